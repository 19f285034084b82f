"""Every recorded answer of the public extractkit harness, kind by kind.

``OEB_TEST_VECTORS`` names another file, or a folder with extractkit_vectors.jsonl in it.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.scoring import field_accuracy
from oeb_ray.scoring.field_accuracy.gold import box_of
from oeb_ray.scoring.geometry import iou

NAME = "extractkit_vectors.jsonl"
Vector = dict[str, Any]
CHECKS: dict[str, Callable[[Vector], Any]] = {}
"""By kind: what the package answers to a vector, in the shape of its ``expect``."""


def checks(*kinds: str) -> Callable[[Callable[[Vector], Any]], Callable[[Vector], Any]]:
    def named(check: Callable[[Vector], Any]) -> Callable[[Vector], Any]:
        CHECKS.update(dict.fromkeys(kinds, check))
        return check

    return named


@cache
def vectors() -> dict[str, list[Vector]]:
    """All vectors by kind. Texts hold U+2028 and the like, so lines end at line feeds only."""
    path = Path(os.environ.get("OEB_TEST_VECTORS") or Path(__file__).parent / "data")
    path = path / NAME if path.is_dir() else path
    by_kind = defaultdict(list)
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            vector = json.loads(line)
            by_kind[vector["kind"]].append(vector)
    assert by_kind, f"{path} holds no vectors"
    return by_kind


def differs(got: Any, wanted: Any, at: str = "") -> str | None:
    """Where two answers differ, numbers by more than their last digits; None if nowhere."""
    if type(wanted) in (int, float) and type(got) in (int, float):
        return None if math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-15) else f"{at}: {got!r}, not {wanted!r}"
    if isinstance(wanted, dict) and isinstance(got, dict) and got.keys() == wanted.keys():
        return next((wrong for key in wanted if (wrong := differs(got[key], wanted[key], f"{at}.{key}"))), None)
    if isinstance(wanted, list) and isinstance(got, list) and len(got) == len(wanted):
        pairs = enumerate(zip(got, wanted, strict=True))
        return next((wrong for n, (g, w) in pairs if (wrong := differs(g, w, f"{at}[{n}]"))), None)
    return None if type(got) is type(wanted) and got == wanted else f"{at}: {got!r}, not {wanted!r}"


@checks("normalize_text", "normalize_money", "normalize_count")
def normal_form(vector: Vector) -> Any:
    return {"value": field_accuracy.normalized(vector["input"]["value"], vector["kind"].removeprefix("normalize_"))}


@checks("values_match")
def match(vector: Vector) -> Any:
    return {"match": field_accuracy.values_match(**vector["input"])}


@checks("iou")
def ratio(vector: Vector) -> Any:
    one, other = box_of(vector["input"]["a"]), box_of(vector["input"]["b"])
    assert one and other
    return {"iou": iou(one, other)}


@checks("score")
def scored(vector: Vector) -> Any:
    return field_accuracy.score(vector["input"]["fields"], vector["input"]["doc"])


@checks("score_failure")
def failed(vector: Vector) -> Any:
    return field_accuracy.score_failure(vector["input"]["doc"])


@checks("cost")
def cost(vector: Vector) -> Any:
    given = vector["input"]
    prices = given["pricing"] and (given["pricing"]["inputPerMTokUSD"], given["pricing"]["outputPerMTokUSD"])
    return {"costUSD": field_accuracy.token_cost(given["inputTokens"], given["outputTokens"], prices)}


@checks("summarize")
def summary(vector: Vector) -> Any:
    run = vector["input"]["run"]
    return {"model": run["model"], "perSchema": field_accuracy.summarize(run["docs"])}


@pytest.mark.parametrize("kind", sorted(CHECKS))
def test_extractkit_vectors(kind: str) -> None:
    listed = vectors()[kind]
    assert listed, f"no vectors of the kind {kind}"
    wrong = [
        f"{vector['id']}{difference}"
        for vector in listed
        if (difference := differs(CHECKS[kind](vector), vector["expect"]))
    ]
    assert not wrong, f"{len(wrong)} of {len(listed)} disagree:\n" + "\n".join(wrong)


def test_a_difference_in_an_extractkit_vector_is_told_by_its_place() -> None:
    assert differs({"a": [1, 0.5]}, {"a": [1, 0.25]}) == ".a[1]: 0.5, not 0.25"
    assert differs({"a": True}, {"a": 1}) is not None
    assert differs({"a": 0.1 + 0.2}, {"a": 0.3}) is None
    assert differs([1], [1, 2]) is not None
    assert differs({"a": 1}, {"b": 1}) is not None
