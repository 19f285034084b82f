"""`oeb plan`: what it foretells of outputs that can be made here; larger sizes are held to it by `make bench-plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oeb_ray import forecast, layout, storage
from oeb_ray.cli.main import main
from oeb_ray.forecast import Document, Scale
from tests.helpers import SYSTEMS, SmallCorpus, make_corpus, overrides, run_inline


@pytest.mark.parametrize("documents", [1, 63, 64, 65, 300, 5000])
@pytest.mark.parametrize("suites", [1, 4])
def test_parts_are_counted_as_they_are_made(documents: int, suites: int) -> None:
    ids = [f"doc {number}" for number in range(documents)]
    homes = layout.homes(ids, [str(number % suites) for number in range(documents)], [0] * documents)
    made = len(set(homes))
    most = forecast.parts_of(documents, suites)
    assert made <= most <= max(suites, documents // 16 + suites)
    assert made >= 0.8 * most or documents < suites


def test_the_output_of_a_small_job_foretells_a_larger_one(small: SmallCorpus, finished: str, tmp_path: Path) -> None:
    few = make_corpus(tmp_path / "corpus", 40)
    run_inline(overrides(few, tmp_path / "few"))
    document, runs, paid = forecast.document_of(str(tmp_path / "few"))
    assert (runs, paid) == (len(SYSTEMS), False)
    told = forecast.forecast(Scale(small.documents, runs, suites=2, paid=False), document)
    there = storage.listed(finished)
    assert told.objects == pytest.approx(len(there), rel=0.1)
    assert told.bytes == pytest.approx(sum(stamp.size for stamp in there.values()), rel=0.25)


def test_time_is_that_of_the_slower_half_and_money_that_of_every_document() -> None:
    vendor = Scale(documents=1000, runs=3, nodes=2, cpus=4, in_flight=10)
    slow = forecast.forecast(vendor, Document(vendor_seconds=10.0, usd=0.03))
    assert slow.predict_seconds == pytest.approx(3000) and slow.vendor_usd == pytest.approx(90)
    assert slow.seconds == pytest.approx(3000 + forecast.BEGINNING_SECONDS) and slow.score_seconds < 100
    heavy = forecast.forecast(vendor, Document(vendor_seconds=0.1, score_seconds=60.0))
    assert heavy.seconds == pytest.approx(heavy.score_seconds + forecast.BEGINNING_SECONDS)
    crowded = forecast.forecast(Scale(10**6, in_flight=10**6), Document())
    assert crowded.predict_seconds == pytest.approx(10**6 / forecast.POOL_PER_SECOND), "one pool stores no faster"
    assert slow.request_usd == pytest.approx(slow.writes * 0.005 / 1000 + slow.reads * 0.0004 / 1000, rel=1e-3)


def test_the_command_says_it_for_people_and_programs(finished: str, capsys) -> None:
    assert main(["plan", finished, "--documents", "1e7", "--nodes", "50"]) == 0
    shown = capsys.readouterr().out
    assert "20,000,000" in shown and "10,000,000 documents x 2 runs" in shown and "on 50 x 8 processors" in shown
    assert main(["plan", "--documents", "1e6", "--usd-per-doc", "0.03", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["vendor_usd"] == pytest.approx(30_000) and told["prices"]["as_of"]


def test_numbers_that_are_none_are_named_together(tmp_path: Path, capsys) -> None:
    assert main(["plan", "--documents", "1.5", "--nodes", "0", "--request-ms", "nan"]) == 2
    said = capsys.readouterr().err
    assert "--documents '1.5'" in said and "--nodes '0'" in said and "--request-ms 'nan'" in said
    assert main(["plan", "--documents", "3", "--suites", "4"]) == 2
    assert main(["plan", str(tmp_path), "--documents", "3"]) == 2
