"""BR-78: what a scheduler sees. The exit code and the last line of a command tell the same story."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oeb_ray.simulator import Profile, Simulator
from tests.helpers import KEY, SCHEMA, SmallCorpus, called, make_pdf_corpus

DOCUMENTS = 6


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), DOCUMENTS)


@pytest.fixture(scope="module")
def simulator(corpus: SmallCorpus) -> Iterator[Simulator]:
    profile = {"answers": str(corpus.folder / "gold"), "documents": str(corpus.folder / "docs"),
               "vendors": {"mistral": {}, "datalab": {}}}  # fmt: skip
    with Simulator(Profile.from_dict(profile)) as opened:
        yield opened


@pytest.fixture
def words(
    corpus: SmallCorpus, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """A benchmark of one paid vendor."""
    for vendor in ("mistral", "datalab"):
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", KEY)
        monkeypatch.setenv(f"OEB_{vendor.upper()}_ADDRESS", f"{simulator.url}/{vendor}")
    yield ["benchmark", "--manifest", str(corpus.manifest), "--out", str(tmp_path / "out"), "cluster=inline",
           "--providers", "mistral"]  # fmt: skip
    for vendor in ("mistral", "datalab"):
        simulator.dials(vendor, key="", error_400=0.0)


def last(text: str) -> str:
    return next(line for line in reversed(text.splitlines()) if "documents" in line)


def test_done_and_nothing_left_to_do_are_0(words: list[str]) -> None:
    for _ in range(2):
        code, out, err = called(*words)
        assert (code, err.count("the same command goes on")) == (0, 0)
        assert last(out).startswith("6/6 documents  0 failed  ")


def test_one_failed_document_is_0_and_all_are_1(words: list[str], corpus: SmallCorpus, simulator: Simulator) -> None:
    (corpus.folder / "docs" / "doc 00002 [x].pdf").rename(corpus.folder / "kept")
    (corpus.folder / "docs" / "doc 00002 [x].pdf").write_bytes(b"no document at all")
    try:
        code, out, _ = called(*words)
    finally:
        (corpus.folder / "kept").rename(corpus.folder / "docs" / "doc 00002 [x].pdf")
    assert code == 0 and last(out).startswith("6/6 documents  1 failed")
    simulator.dials("mistral", error_400=1.0)
    code, out, _ = called(*words, "--out", f"{words[4]}2")
    assert code == 1 and last(out).startswith("6/6 documents  6 failed")


def test_a_stopped_account_is_3_though_another_is_done(words: list[str], simulator: Simulator) -> None:
    simulator.dials("mistral", key="another")
    code, out, err = called(*words, "datalab", "--options", '{"datalab": {"poll_interval": 0.1}}')
    assert code == 3
    assert re.search(r"^mistral-\w+: mistral: .*\nthe same command goes on once that is mended$", err, re.MULTILINE)
    assert last(out).startswith("6/12 documents  0 failed")


def test_a_limit_in_dollars_is_3(words: list[str]) -> None:
    code, out, err = called(*words, "--max-usd", "1", "providers.mistral.usd_per_doc=0.5")
    assert code == 3 and "max_usd" in err
    assert last(out).startswith("2/6 documents  0 failed  ")


def test_a_record_with_an_error_is_1_and_a_refusal_3(words: list[str], corpus: SmallCorpus, simulator: Simulator,
                                                     tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    predict = ["predict", "--provider", "mistral", "--doc", str(corpus.folder / "docs" / "doc 00001 [x].pdf"),
               "--schema", str(tmp_path / "schema.json")]  # fmt: skip
    assert called(*predict)[0] == 0
    simulator.dials("mistral", error_400=1.0)
    code, out, _ = called(*predict)
    assert code == 1 and json.loads(out)["error"]
    simulator.dials("mistral", key="another")
    code, out, err = called(*predict)
    assert (code, out) == (3, "") and err.startswith("oeb: mistral: ")


def test_a_storage_that_cannot_be_written_is_5(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, no folder")
    code, out, err = called(*words)
    assert (code, out) == (5, "") and "Not a directory" in err and "Traceback" not in err


@pytest.mark.parametrize(
    "request_words",
    [
        ["show", "nowhere"],
        ["audit", "nowhere", "run"],
        ["verify", "nowhere"],
        ["export", "nowhere/run"],
        ["compact", "nowhere/run", "file.parquet"],
        ["diff", "nowhere/one", "nowhere/two"],
        ["import", "nowhere", "--manifest", "none.parquet"],
        ["ledger", "nowhere"],
        ["providers", "nobody"],
        ["corpus", "check", "none.parquet"],
        ["score", "--pred", "none.json", "--gt", "none.json", "--schema", "none.json"],
        ["score", "--manifest", "none.parquet", "--out", "run"],
        ["predict", "--provider", "pdftext", "--doc", "none.pdf", "--schema", "none.json"],
        ["benchmark", "--providers", "datlab"],
        ["benchmark", "--manifest", "none.parquet", "--providers", "pdftext"],
        ["benchmark", "nonsense"],
        ["benchmark", "--nonsense"],
        ["nonsense"],
        [],
    ],
    ids=" ".join,
)
def test_what_cannot_be_asked_for_is_2_with_one_message(
    request_words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = called(*request_words)
    assert (code, out) == (2, "") and err.strip() and "Traceback" not in err
    assert not list(tmp_path.iterdir())
