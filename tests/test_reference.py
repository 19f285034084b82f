"""The real corpus through the runner, against what the public reference scorer gives: to the last bit."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import storage, tables
from oeb_ray.corpus.manifest import load
from oeb_ray.jsontext import from_raw_json, read_json
from oeb_ray.scorers import field_matching
from oeb_ray.scoring.field_matching import canon_key, score
from tests.helpers import run_inline

TIED = {"verdicts": {"fabricated", "invented_item", "invented_field", "matched_rows"}}


@pytest.fixture(scope="module")
def scored(outside_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """One job over all systems: where it wrote, and the run of each system."""
    out = str(tmp_path_factory.mktemp("runs"))
    systems = sorted(path.name for path in (outside_data / "predictions").iterdir())
    options = ",".join(f"{{system: {system}}}" for system in systems)
    summaries = run_inline(
        [
            "corpus=manifest", f"corpus.manifest='{outside_data}/corpus/manifest.parquet'", "provider=[replay]",
            f"providers.replay.options=[{options}]", f"providers.replay.folder='{outside_data}/predictions'",
            f"storage.root='{out}'", "cluster=inline",
        ]
    )  # fmt: skip
    return out, {summary["settings"]["system"]: run for run, summary in summaries.items()}


def table(out: str, run: str, name: str, schema: Any) -> list[dict[str, Any]]:
    folder = storage.join(out, run, name)
    parts = [storage.join(folder, key) for key in storage.listed(folder)]
    rows: list[dict[str, Any]] = tables.read_parts(parts, schema).to_pylist()
    return rows


def digest(verdicts: list[dict[str, Any]]) -> str:
    """As the reference's figures were digested: keys are made again from the raw values."""

    def keyed(raw: str | None) -> tuple[Any, str | None]:
        return (None, None) if raw is None else ((value := from_raw_json(raw)), canon_key(value))

    lines = []
    for row in verdicts:
        (gold, gold_key), (pred, pred_key) = keyed(row["gold_raw"]), keyed(row["pred_raw"])
        if "\\u" not in (row["gold_canon"] or "") + (row["pred_canon"] or ""):
            assert (gold_key, pred_key) == (row["gold_canon"], row["pred_canon"])
        entry = {
            "address": json.loads(row["address"]), "gold_raw": gold, "pred_raw": pred, "gold_canon": gold_key,
            "pred_canon": pred_key, "verdict": row["verdict"],
        }  # fmt: skip
        lines.append(json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.timeout(300)
def test_every_figure_and_verdict_of_the_real_corpus_is_the_references(outside_data: Path, scored: Any) -> None:
    out, runs = scored
    lines = (outside_data / "peer_scores.jsonl").read_text().splitlines()
    expected = {(line["system"], line["doc_id"]): line for line in map(json.loads, lines)}
    docs = map(load(f"{outside_data}/corpus/manifest.parquet").doc, range(60))
    corpus = {doc.doc_id: (read_json(storage.read(doc.gt_path)), json.loads(doc.schema)) for doc in docs}
    wrong: list[Any] = []
    scored_rows = as_empty = 0
    for system, run in runs.items():
        verdicts: dict[str, list[dict[str, Any]]] = {}
        for row in table(out, run, "verdicts.parquet", field_matching.VERDICTS):
            verdicts.setdefault(row["doc_id"], []).append(row)
        for row in table(out, run, "scores.parquet", field_matching.SCORES):
            key = system, row["doc_id"]
            line = expected.pop(key, None)
            if line is None or "error" in line:
                assert row["status"] == "error", "what the reference could not read, or had no prediction for"
            elif row["error"] in ("not an object", "empty prediction"):
                as_empty += 1  # `score` takes these for empty, and so does the reference; the runner makes error rows
                figures = score({}, *corpus[row["doc_id"]])
                wrong += [(key, name) for name in field_matching.SCORE_KEYS if figures[name] != line[name]]
            else:
                scored_rows += 1
                free = TIED.get(line["tie"] or "", set())
                wrong += [
                    (key, name) for name in field_matching.SCORE_KEYS if name not in free and row[name] != line[name]
                ]
                listed = verdicts[row["doc_id"]]
                if line["tie"] is None:
                    assert Counter(one["verdict"] for one in listed) == line["verdict_counts"]
                if line["tie"] is None or len(listed) < 20_000:  # up to the size where ties are chosen as it does
                    wrong += [(key, "digest")] * (digest(listed) != line["verdicts_sha256"])
    assert not wrong
    assert not [key for key, line in expected.items() if "error" not in line], "every line was looked at"
    assert (scored_rows, as_empty) == (482, 8)
