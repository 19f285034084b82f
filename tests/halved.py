"""Another scorer, for tests of jobs with several: accuracy is multiplied by what the annotations say."""

from __future__ import annotations

import json

from oeb_ray.scorers.contract import Given, Graded
from oeb_ray.scorers.field_matching import FieldMatching


class Halved(FieldMatching):
    """Looks at annotations and records too."""

    name, label = "halved", "halved 1"
    reads_annotations = reads_record = True

    def grade(self, given: Given) -> Graded:
        assert given.record is not None and json.loads(given.record)["doc_id"]
        graded = super().grade(given)
        if given.annotations is not None and "accuracy" in graded.row:
            graded.row["accuracy"] *= json.loads(given.annotations)["factor"]
        return graded


SCORER = Halved()
