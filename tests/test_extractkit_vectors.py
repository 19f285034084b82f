"""Every recorded answer of the public extractkit harness, kind by kind.

``OEB_TEST_VECTORS`` names another file, or a folder with extractkit_vectors.jsonl in it.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.corpus.cord import map_cord
from oeb_ray.corpus.curate import item_bucket, pick
from oeb_ray.corpus.docile import map_docile
from oeb_ray.corpus.fetching import Source, download
from oeb_ray.corpus.forms import FORMS, MappingError
from oeb_ray.corpus.pinned_fetch import fetch_pinned
from oeb_ray.corpus.pins import CordPins, DocilePins, Pins, mismatch, read_pins
from oeb_ray.digests import digest
from oeb_ray.errors import RequestError
from oeb_ray.extractkit.record import file_name, latest
from oeb_ray.extractkit.report import blocks, extras_line, field_table, main_table
from oeb_ray.providers import evidence
from oeb_ray.scoring import field_accuracy
from oeb_ray.scoring.field_accuracy.gold import box_of
from oeb_ray.scoring.geometry import iou

from .extractkit_runs import run_doc, sniffed, with_places
from .file_server import file_server

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


@checks("cord_map", "docile_map")
def mapped(vector: Vector) -> Any:
    given = vector["input"]
    try:
        if vector["kind"] == "cord_map":
            return map_cord(given["ground_truth"]).as_json()
        return map_docile(given["annotation"]).as_json()
    except MappingError as error:
        assert error.reason == vector["reason"]
        return {"error": type(error).__name__}


@checks("unwrap")
def unwrapped(vector: Vector) -> Any:
    given = vector["input"]
    form = evidence.form_of(json.loads(FORMS[given["schema"]].schema()))
    found = evidence.taken(form, given["fields"], given["pages"])
    return {
        "data": found.data, "fields": with_places(found.data, found.citations), "missingPaths": found.missing,
        "issueCount": len(found.issues), "issuePaths": [path for path, _ in found.issues],
    }  # fmt: skip


@checks("report_table", "report_fields", "report_extras")
def tables(vector: Vector) -> Any:
    found = blocks(vector["input"]["record"])
    return {
        "report_table": lambda: {"lines": [line for block in found for line in main_table(block)]},
        "report_fields": lambda: {"tables": [field_table(block) for block in found]},
        "report_extras": lambda: {"lists": [line for block in found if (line := extras_line(block))]},
    }[vector["kind"]]()


@checks("run_filename")
def named(vector: Vector) -> Any:
    return {"name": file_name(vector["input"]["startedAt"])}


@checks("latest_run")
def newest(vector: Vector) -> Any:
    try:
        return {"name": latest(vector["input"]["names"])}
    except RequestError as error:
        assert "no run record" in str(error)
        return {"error": "no_run_records"}


@checks("sniff_media")
def sniff(vector: Vector) -> Any:
    return {"media": sniffed(bytes.fromhex(vector["input"]["hex"]))}


@checks("run_doc")
def run(vector: Vector) -> Any:
    given, doc = vector["input"], vector["input"]["doc"]
    data = {"png": b"\x89PNG\r\n\x1a\n", "gif": b"GIF89a"}[doc["media"]]
    prices = given["pricing"] and (given["pricing"]["inputPerMTokUSD"], given["pricing"]["outputPerMTokUSD"])
    return run_doc(
        doc["id"], doc["schema"], doc, doc["pages"], given["replies"], [given["usage_per_call"]], prices, data
    )


@checks("pin_pick")
def picked(vector: Vector) -> Any:
    candidates = [(candidate["id"], candidate["bucket"]) for candidate in vector["input"]["candidates"]]
    return {"ids": pick(candidates, vector["input"]["count"])}


@checks("cord_bucket")
def bucket(vector: Vector) -> Any:
    return {"bucket": item_bucket(vector["input"]["lineItemCount"])}


@checks("verify_pin")
def verified(vector: Vector) -> Any:
    given = vector["input"]
    if given["what"] != "manifest_version":
        return {"ok": mismatch(given["what"], given["pinned"], given["actual"]) is None}
    with pytest.raises(RequestError, match=f"version {given['version']}"):
        read_pins(json.dumps({"version": given["version"]}).encode(), "pins.json")
    return {"ok": False}


@checks("fetch")
def fetched(vector: Vector) -> Any:
    """A folder, a server and a token as the vector has them, and what a fetch makes of them."""
    given, wanted, good = vector["input"], vector["expect"], bytes(range(256)) * 16
    with file_server() as server, tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.parquet")
        if given["cord_cache"] != "absent":
            file.write_bytes(good if given["cord_cache"] == "good" else b"other")
        if given["docile_present"]:
            Path(folder, "docile", "annotations").mkdir(parents=True)
        cord = "/datasets/a/b/resolve/main/rows.parquet"
        server.files[cord] = good
        server.faults[cord] = {"bad": "other", "good": ""}.get(given["cord_server"], given["cord_server"])
        pins = Pins(CordPins("a/b", "main", file.name, digest(good), "test", ()), DocilePins("zip", "val", ()), "")
        said, token = "", given["docile_token"]
        ok, docile = True, "not_reached"
        try:
            made = fetch_pinned(
                pins, Path(folder), {"DOCILE_TOKEN": token or ""}, cord_host=server.url, docile_host=server.url
            )
            docile, said = made.docile, "".join(made.notes)
        except RequestError as error:
            ok, said = False, str(error)
            docile = "failed" if token else docile
        assert not [secret for secret in wanted.get("must_not_print", ()) if secret in said]
        asked = [path for path, _ in server.asked]
        return {
            "ok": ok, "cord_requests": asked.count(cord), "docile": docile,
            "cord_file": ("good" if file.read_bytes() == good else "bad") if file.exists() else "absent",
            "docile_requests": len(asked) - asked.count(cord),
            **{key: wanted[key] for key in ("must_not_print",) if key in wanted},
        }  # fmt: skip


@checks("resume")
def resumed(vector: Vector) -> Any:
    given = vector["input"]
    good = bytes(number % 251 for number in range(given["total"]))
    with file_server() as server, tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "file")
        part = b"x" * given["partial"] if given.get("partial_corrupt") else good[: given["partial"]]
        target.with_name("file.part").write_bytes(part)
        server.files["/file"], server.faults["/file"] = good, "" if given["server_ranges"] else "whole"
        download(Source(f"{server.url}/file", target, digest(good)))
        found = {
            "request_from": server.asked[0][1], "bytes_received": server.sent, "restarted": len(server.asked) == 2,
            "file": "good" if target.read_bytes() == good else "bad",
        }  # fmt: skip
        return {key: found[key] for key in vector["expect"]}


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


def test_every_kind_of_extractkit_vector_is_checked() -> None:
    elsewhere = {"select_models"}  # by the tests of the line-up, whose ids say so
    assert vectors().keys() - elsewhere == CHECKS.keys()


def test_a_difference_in_an_extractkit_vector_is_told_by_its_place() -> None:
    assert differs({"a": [1, 0.5]}, {"a": [1, 0.25]}) == ".a[1]: 0.5, not 0.25"
    assert differs({"a": True}, {"a": 1}) is not None
    assert differs({"a": 0.1 + 0.2}, {"a": 0.3}) is None
    assert differs([1], [1, 2]) is not None
    assert differs({"a": 1}, {"b": 1}) is not None
