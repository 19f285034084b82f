"""A rehearsal: a whole job against simulated vendors, without keys, money or anything left behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import rehearsal
from oeb_ray.cli.job import run_and_print
from oeb_ray.config import Job, composed, read_job
from oeb_ray.errors import RequestError
from oeb_ray.simulator.account import fingerprint
from tests.helpers import SmallCorpus, make_pdf_corpus

KEYS = ("DATALAB_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY")
DOCS = 8


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), documents=DOCS)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("oeb_ray.providers.transport.WAITS", (0.1, 0.2, 0.4))
    monkeypatch.setattr("oeb_ray.providers.transport.BUSY_WAIT", 0.1)


def words(corpus: SmallCorpus, out: Path, *more: str) -> list[str]:
    quick = [f"rehearsal.{vendor}.latency=0.05" for vendor in ("datalab", "mistral", "openrouter")]
    return [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab,mistral,openrouter]",
        "providers.openrouter.models=[org/one,org/two]", "providers.datalab.poll_interval=0.1",
        f"storage.root='{out}'", "cluster=inline", "experiment=rehearsal", *quick, *more,
    ]  # fmt: skip


def job(corpus: SmallCorpus, out: Path, *more: str) -> Job:
    return read_job(composed(words(corpus, out, *more)))


def test_the_whole_plan_is_run_without_keys_and_nothing_is_kept(
    corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_and_print(job(corpus, tmp_path / "out")) == 0
    said = capsys.readouterr().out
    tallies = {
        line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith(("datalab ", "m", "o"))
    }
    assert tallies["datalab"][0] == "8" and tallies["datalab"][3] == "0.24"
    assert tallies["mistral"][:4] == ["8", "8", "0", "0.16"]
    assert tallies["openrouter"][:4] == ["8", "16", "0", "0.80"]
    assert int(tallies["openrouter"][5]) <= 5, "both models go through one account"
    assert "nothing was throttled" in said and "32/32 documents  0 failed" in said
    assert not (tmp_path / "out").exists() and not list((tmp_path / "temporary").iterdir())
    assert not any(name in os.environ for name in KEYS)


def test_where_vendors_refuse_is_said_with_what_would_keep_to_it(
    corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["rehearsal.mistral.concurrent=2", "rehearsal.mistral.latency=0.2", "+rehearsal.openrouter.first_402=1"]
    run_and_print(job(corpus, tmp_path / "out", *more, "+rehearsal.datalab.credit=0.1"))
    said = capsys.readouterr().out
    assert "refused by its limit of 2 at once; providers.mistral.in_flight=2 keeps to it" in said
    assert "openrouter: 8 requests refused by what was in flight (1 refusals for each document)" in said
    assert "datalab: " in said and "the end of its credit of $0.1" in said


def test_vendors_see_a_placeholder_and_keys_come_back(
    corpus: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "canary")
    from oeb_ray import run
    from oeb_ray.cluster.inline import InlineCluster
    from tests.helpers import Silent

    given = [word for word in words(corpus, tmp_path / "out") if not word.startswith("provider")]
    with rehearsal.staged(read_job(composed([*given, "provider=[mistral]", "limit=2"]))) as stage:
        cluster: Any = InlineCluster()
        run.execute(run.plan_job(*stage.jobs), cluster, Silent())
        cluster.close()
        seen = {entry["key"] for entry in stage._simulator.log()}
        (tally,) = stage.tallies()
    assert seen == {fingerprint(rehearsal.PLACEHOLDER)} and (tally.vendor, tally.documents) == ("mistral", 2)
    assert os.environ["MISTRAL_API_KEY"] == "canary"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["cluster=existing", "cluster.address='h:1'"], "on this machine"),
        (["+rehearsal.datalab.latncy=1"], "datalab.latncy: unknown, did you mean latency"),
        (["+rehearsal.nobody.latency=1"], "nobody: unknown"),
        (["rehearsal=7"], "wants dials by vendor"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(corpus: SmallCorpus, tmp_path: Path, more: list[str], said: str) -> None:
    with pytest.raises(RequestError, match=said), rehearsal.staged(job(corpus, tmp_path / "out", *more)):
        pass


def test_a_vendor_that_nobody_simulates_is_named(
    corpus: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "VENDORS", {"mistral": ""})
    with (
        pytest.raises(RequestError, match="datalab cannot be simulated"),
        rehearsal.staged(job(corpus, tmp_path / "out")),
    ):
        pass


def test_a_dry_run_shows_the_plan_and_calls_nobody(
    corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_and_print(job(corpus, tmp_path / "out", "dry_run=true")) == 0
    said = capsys.readouterr().out
    assert "datalab" in said and "simulated vendors saw" not in said
