"""`oeb score`: grades predictions without a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from .base import declare, json_file, print_json


def add(commands: Any) -> None:
    """Declares `oeb score`."""
    parser = declare(
        commands, "score", "Grade one prediction against one gold document.",
        "oeb score --pred pred.json --gt gold.json --schema schema.json | jq .accuracy",
    )  # fmt: skip
    parser.add_argument("--pred", required=True, metavar="FILE", help="the prediction")
    parser.add_argument("--gt", required=True, metavar="FILE", help="the gold document")
    parser.add_argument("--schema", required=True, metavar="FILE", help="the JSON Schema both answer to")
    parser.add_argument(
        "--order-matters", nargs="*", default=[], metavar="ARRAY", help="arrays whose order counts, such as steps"
    )
    parser.add_argument("--verdicts", action="store_true", help="also what happened at every address")
    parser.set_defaults(command=_score)


def _score(given: argparse.Namespace) -> int:
    from ..scoring.field_matching import score

    pred, gold, schema = (json_file(path) for path in (given.pred, given.gt, given.schema))
    try:
        result = score(pred, gold, schema, order_matters=given.order_matters, verdicts=given.verdicts)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from error
    if given.verdicts:
        result["verdicts"] = [verdict._asdict() for verdict in result["verdicts"]]
    print_json(result)
    return 0
