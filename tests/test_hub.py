"""Corpora on the hub: fetched once, named for resuming, refused with one clear message; a small hub on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import run, storage
from oeb_ray.cli.main import main
from oeb_ray.config import composed, read_job
from oeb_ray.corpus import hub
from oeb_ray.errors import MissingCredential, RequestError
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import Silent, SmallCorpus, make_corpus, manifest_rows, overrides, write_manifest

REPO = "someone/their-corpus"


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_corpus(tmp_path / "corpus", documents=6)


@pytest.fixture
def server(corpus: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """A hub with the corpus; the cache is a folder of the test's own."""
    pytest.importorskip("huggingface_hub")
    profile = {"answers": str(corpus.predictions / "good"), "hub": {REPO: str(corpus.folder)}}
    with Simulator(Profile.from_dict(profile)) as opened:
        monkeypatch.setenv("HF_ENDPOINT", f"{opened.url}/hub")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
        storage._backend.cache_clear()  # a hub of another test may have been read from
        yield opened
        storage._backend.cache_clear()


def job(corpus: SmallCorpus, out: Path, *more: str) -> dict[str, dict[str, Any]]:
    words = ["corpus=hub", f"corpus.repo='{REPO}'", "provider=[replay]", "providers.replay.system=good",
             f"providers.replay.folder='{corpus.predictions}'", f"storage.root='{out}'", "cluster=inline",
             *more]  # fmt: skip
    made = read_job(composed(words))
    plan = run.plan_job(made)
    notes.extend(plan.warnings)
    return run.execute(plan, run.start_cluster(made), Silent()).summaries


notes: list[str] = []


def test_a_dataset_is_fetched_once_and_names_the_corpus(corpus, server, tmp_path) -> None:
    (summary,) = job(corpus, tmp_path / "out").values()
    assert (summary["documents"], summary["accuracy"]) == (6, 1.0)
    settings = json.loads(next((tmp_path / "out").glob("*/settings.json")).read_text())
    assert settings["corpus"] == f"huggingface {REPO}"
    assert len(settings["corpus_commit"]) == 40
    fetched = server.stats()["hub"]["file"]
    job(corpus, tmp_path / "out")
    assert server.stats()["hub"]["file"] == fetched


def test_a_dry_run_fetches_the_manifest_alone(corpus, server, tmp_path, capsys) -> None:
    words = ["benchmark", "--providers", "pdftext", "--repo", REPO, "--out", f"{tmp_path}/out", "cluster=inline"]
    for place in ([], ["--data-root", f"{tmp_path}/here"]):
        assert main([*words, *place, "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert "predict: no record: 6: 'doc 00000 [x]'" in said and "12 files of" in said
    assert server.stats()["hub"]["file"] == 2 and not (tmp_path / "here").exists()
    assert main(words) == 0
    (corpus.folder / manifest_rows(corpus)[0]["doc_path"]).write_text("Invoice id: another\n")
    fetched = server.stats()["hub"]["file"]
    capsys.readouterr()
    assert main([*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "predict: recorded, reused: 6" in said and "doc 00000 [x]: its document has changed" in said
    assert server.stats()["hub"]["file"] == fetched + 1


def at_its_address(corpus: SmallCorpus, out: Path, address: str, *more: str) -> dict[str, Any]:
    """The summary of a job whose manifest, documents and golds are read where they lie on the hub."""
    words = overrides(corpus, out, f"corpus.manifest='{address}'", *more, systems=("good",))
    made = read_job(composed(words))
    plan = run.plan_job(made)
    notes.extend(plan.warnings)
    (summary,) = run.execute(plan, run.start_cluster(made), Silent()).summaries.values()
    return summary


def test_a_corpus_is_read_where_it_lies_on_the_hub(corpus, server, tmp_path, monkeypatch) -> None:
    """Nothing is fetched to this machine; the commit of the plan is that of every read, and is noted."""
    address = f"hf://datasets/{REPO}/manifest.parquet"
    summary = at_its_address(corpus, tmp_path / "out", address)
    assert (summary["documents"], summary["accuracy"]) == (6, 1.0)
    about = json.loads((tmp_path / "out" / "corpus.json").read_text())
    assert about["corpus"] == about["manifest"] == address and len(about["commit"]) == 40
    assert not (tmp_path / "cache").exists()
    files = server.stats()["hub"]["file"]
    assert at_its_address(corpus, tmp_path / "out", address) == summary
    assert server.stats()["hub"]["file"] <= files + 2, "only the manifest is read again"
    for revision in ("main", about["commit"]):
        pinned = f"hf://datasets/{REPO}@{revision}/manifest.parquet"
        assert at_its_address(corpus, tmp_path / revision, pinned)["accuracy"] == 1.0


def test_what_is_wrong_with_an_address_on_the_hub_is_said(corpus, server, tmp_path) -> None:
    for address, said in (
        ("hf://datasets/someone/none/manifest.parquet", "no dataset someone/none at"),
        (f"hf://datasets/{REPO}@v2/manifest.parquet", "no revision 'v2'"),
        (f"hf://datasets/{REPO}@/manifest.parquet", "write org/name or org/name@revision"),
        (f"hf://datasets/{REPO}/none.parquet", "no manifest file at"),
    ):
        with pytest.raises(RequestError, match=said):
            at_its_address(corpus, tmp_path / "out", address)
    with pytest.raises(RequestError, match="are read, not written"):
        read_job(composed(["corpus=sample", f"storage.root='hf://datasets/{REPO}/runs'"]))
    assert not (tmp_path / "out").exists()


def test_data_root_is_where_it_lands(corpus, server, tmp_path) -> None:
    job(corpus, tmp_path / "out", f"corpus.data_root='{tmp_path}/here'")
    assert (tmp_path / "here" / "gold" / "doc 00003 [x].json").is_file()
    assert not (tmp_path / "cache").exists()


def test_a_corpus_that_moves_on_extends_and_a_revision_by_name_is_another(corpus, server, tmp_path) -> None:
    notes.clear()
    job(corpus, tmp_path / "out")
    commit = json.loads((tmp_path / "out" / "corpus.json").read_text())["commit"]
    rows = manifest_rows(corpus)
    write_manifest(corpus.manifest, rows[:5])
    (summary,) = job(corpus, tmp_path / "out", "limit=4").values()
    assert [note for note in notes if f"was at {commit}" in note]
    for revision in (commit, hub.fetch(REPO).commit):  # of which the first is in the cache alone
        with pytest.raises(RequestError, match="choose another output"):
            job(corpus, tmp_path / "out", f"corpus.repo='{REPO}@{revision}'")
    assert summary["documents"] == 5


def test_without_the_hub_what_was_fetched_is_used(corpus, server, tmp_path, monkeypatch) -> None:
    job(corpus, tmp_path / "out")
    hub.fetch(REPO, str(tmp_path / "here"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert job(corpus, tmp_path / "out")
    assert hub.fetch(REPO, str(tmp_path / "here")) == hub.cached(REPO, str(tmp_path / "here"))
    for repo, root in (("someone/other", None), (REPO, str(tmp_path / "nowhere"))):
        with pytest.raises(RequestError, match=r"cannot be fetched from http://127.0.0.1:9 .*give --manifest"):
            hub.fetch(repo, root)


def test_what_is_not_there_or_not_open_is_said(corpus, server, tmp_path, monkeypatch) -> None:
    with pytest.raises(MissingCredential, match=r"no dataset someone/none at .*/hub, or it is not public.* HF_TOKEN"):
        hub.fetch("someone/none")
    with pytest.raises(RequestError, match="no revision 'v2'"):
        hub.fetch(f"{REPO}@v2")
    for wrong in ("corpus", "a/b/c", "a/b@", "https://huggingface.co/a/b"):
        with pytest.raises(RequestError, match="write org/name or org/name@revision"):
            hub.fetch(wrong)
    with pytest.raises(RequestError, match="is fetched into a folder"):
        hub.fetch(REPO, "s3://bucket/x")
    corpus.manifest.unlink()
    with pytest.raises(RequestError, match=r"holds no manifest.parquet"):
        hub.fetch(REPO)
    assert not list(tmp_path.glob("out*"))


def test_a_token_opens_what_is_private(corpus, tmp_path, server, monkeypatch) -> None:
    profile = {"answers": "x", "hub": {REPO: str(corpus.folder)}, "hub_token": "hf_sesame"}
    with Simulator(Profile.from_dict(profile)) as private:
        monkeypatch.setenv("HF_ENDPOINT", f"{private.url}/hub")
        with pytest.raises(MissingCredential):
            hub.fetch(REPO)
        monkeypatch.setenv("HF_TOKEN", "hf_sesame")
        assert os.path.exists(hub.fetch(REPO).manifest)
        monkeypatch.setenv("HF_TOKEN", "hf_other")
        with pytest.raises(RequestError, match="the token in use does not open it") as error:
            hub.fetch("someone/none")
        assert "hf_other" not in str(error.value)


def test_the_default_corpus_is_the_hubs_and_credentials_come_first(monkeypatch, server) -> None:
    monkeypatch.delenv("DATALAB_API_KEY", raising=False)
    assert read_job(composed([])).repo == "datalab-to/omni_extract_bench"
    with pytest.raises(MissingCredential):
        run.plan_job(read_job(composed(["provider=[datalab]"])))
    assert not server.stats()["hub"], "nothing was asked for"


def test_a_hub_without_its_folder_is_refused(tmp_path) -> None:
    with pytest.raises(RequestError, match="no folder /nowhere"):
        Simulator(Profile.from_dict({"answers": "x", "hub": {REPO: "/nowhere"}}))
    with pytest.raises(RequestError, match="hub: no object of folders"):
        Profile.from_dict({"answers": "x", "hub": [REPO]})
