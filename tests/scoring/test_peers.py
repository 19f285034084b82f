"""Random documents beside the published scorers, each in its own environment; every failure names its seed.

Only with ``OEB_PEERS``, the folder that keeps the environments: `make test-peers`. ``OEB_FUZZ_DOCUMENTS`` and
``OEB_FUZZ_START`` as in test_fuzz.py; ``OEB_PEER_PYTHON`` is the interpreter of a peer that wants another Python.
"""

import datetime as dt
import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from oeb_ray.scoring import field_matching, value_f1

from ..bench.pairs import PEERS, environment
from . import peer
from .field_matching import generated, test_fuzz
from .value_f1 import generated as value_f1_generated

ENVIRONMENTS = os.environ.get("OEB_PEERS")
PYTHON = os.environ.get("OEB_PEER_PYTHON")
DOCUMENTS, START = test_fuzz.DOCUMENTS, test_fuzz.START
pytestmark = [
    pytest.mark.skipif(not ENVIRONMENTS, reason="make test-peers: the published scorers are installed for it"),
    pytest.mark.timeout(0),
]
OURS = (
    *("precision", "recall", "f1", "matched_cells", "expected_cells", "predicted_cells"),
    *(f"{kind}_{part}" for kind in ("word", "page") for part in ("correct", "expected", "claims")),
    *("expected_rows", "predicted_rows", "grounded_incomplete", "value_incomplete"),
)


def answers(scorer, cases, folder):
    """The peer's answers to cases, in order."""
    found = PEERS[scorer]
    python = environment(found, Path(ENVIRONMENTS).resolve(), Path(PYTHON) if PYTHON else None)
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    words = [str(python), peer.__file__, found.module, str(folder / "cases.jsonl")]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=folder, env={"PATH": os.environ["PATH"]})
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(scorer, cases, ours, folder):
    """``cases``: by seed. Both sides' answers are compared as JSON: every digit of every float counts."""
    theirs = answers(scorer, cases.values(), folder)
    mine = [json.loads(json.dumps(ours(case))) for case in cases.values()]
    assert len(theirs) == len(cases)
    wrong = [
        f"seed {seed}: {mine!r}, theirs {their!r}"[:2000]
        for seed, mine, their in zip(cases, mine, theirs, strict=True)
        if repr(mine) != repr(their)
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ:\n" + "\n".join(wrong[:10])


def test_documents_come_out_as_by_omni_extract_bench(tmp_path):
    def ours(case):
        result = test_fuzz.outcome(field_matching.score, *case["document"])
        return {"raises": result["raises"].__name__} if "raises" in result else result

    documents = {
        seed: {"document": generated.documents(random.Random(seed))} for seed in range(START, START + DOCUMENTS)
    }
    compare("field_matching", documents, ours, tmp_path)


def test_keys_come_out_as_by_omni_extract_bench(tmp_path):
    rng = random.Random(START)
    values = {number: {"value": test_fuzz.scalar(rng)} for number in range(DOCUMENTS * 10)}
    compare("field_matching", values, lambda case: field_matching.canon_key(case["value"]), tmp_path)


@pytest.mark.parametrize(("make", "share"), [(value_f1_generated.case, 100), (value_f1_generated.table, 2)])
def test_documents_come_out_as_by_extract_bench(make, share, tmp_path):
    def ours(case):
        try:
            figures = value_f1.score(
                case["output"],
                case["expected"],
                case["schema"],
                today=dt.date.today(),  # as the peer does
                field_rules=case.get("field_rules"),
                citations=case.get("citations"),
            )
        except value_f1.Ungradable:
            return None
        return [figures[name] for name in OURS]

    cases = {seed: make(random.Random(seed)) for seed in range(START, START + DOCUMENTS * share // 100)}
    compare("value_f1", cases, ours, tmp_path)
