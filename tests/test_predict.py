"""`predict`, `apredict` and `oeb predict`: one document outside of any run, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oeb_ray
from oeb_ray import AccountFailure, MissingCredential, apredict, predict
from oeb_ray.cli.main import main
from oeb_ray.config import sample_manifest
from oeb_ray.errors import RequestError
from oeb_ray.providers.registry import CARD_NAMES
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import SCHEMA, SmallCorpus, called, make_pdf_corpus

KEY = "canary-4711"
FAST = {"poll_interval": 0.1}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("predict"), documents=12)


@pytest.fixture
def simulator(corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """The vendors, found by the environment as any server of one's own is."""
    profile = {"answers": str(corpus.folder / "gold"), "documents": str(corpus.folder / "docs"),
               "vendors": {"datalab": {"price": 0.03}, "mistral": {"latency": 0.1}}}  # fmt: skip
    with Simulator(Profile.from_dict(profile)) as opened:
        for vendor in ("datalab", "mistral"):
            monkeypatch.setenv(f"{vendor.upper()}_API_KEY", KEY)
            monkeypatch.setenv(f"OEB_{vendor.upper()}_ADDRESS", f"{opened.url}/{vendor}")
        yield opened


def doc(corpus: SmallCorpus, number: int = 0) -> Path:
    return sorted((corpus.folder / "docs").iterdir())[number]


def gold(corpus: SmallCorpus, number: int = 0) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(sorted((corpus.folder / "gold").iterdir())[number].read_text())
    return value


def submissions(simulator: Simulator, vendor: str = "datalab") -> int:
    return sum(simulator.stats()[vendor]["submissions"].values())


def test_a_record_holds_the_answer_and_the_evidence(corpus, simulator) -> None:
    record = predict("datalab", doc(corpus), SCHEMA, mode="accurate", **FAST)
    assert record["result"] == gold(corpus)
    assert record["error"] is None and record["raw"]
    assert record["cost"]["usd"] == 0.03 and record["cost"]["attempts"] == 1 and record["cost"]["wall_s"] > 0
    assert record["run_manifest"]["settings"]["mode"] == "accurate"
    assert record["job_id"]
    assert oeb_ray.score(record["result"], gold(corpus), SCHEMA)["accuracy"] == 1.0
    assert KEY not in json.dumps(record)
    assert list(record)[:4] == ["result", "error", "provider", "cost"]


def test_the_cards_names_stand_for_a_provider_and_its_options(corpus, simulator) -> None:
    record = predict("datalab-accurate", str(doc(corpus)), SCHEMA, **FAST)
    assert record["provider"] == "datalab" and record["run_manifest"]["settings"]["mode"] == "accurate"
    assert set(CARD_NAMES) == {"claude", "datalab-accurate", "gemini", "gpt", "gpt-pro"}


@pytest.mark.parametrize("missing", ["DATALAB_API_KEY"])
def test_without_a_key_nothing_is_asked(corpus, simulator, monkeypatch, missing) -> None:
    monkeypatch.delenv(missing)
    with pytest.raises(MissingCredential, match=missing):
        predict("datalab", doc(corpus), SCHEMA)
    assert submissions(simulator) == 0


def test_an_account_that_is_refused_raises_and_the_next_call_asks_again(corpus, simulator) -> None:
    simulator.dials("datalab", key="another")
    with pytest.raises(AccountFailure, match="401"):
        predict("datalab", doc(corpus), SCHEMA, **FAST)
    simulator.dials("datalab", key="")
    assert predict("datalab", doc(corpus), SCHEMA, **FAST)["error"] is None


def test_what_went_wrong_with_the_document_is_in_the_record(corpus, simulator, tmp_path) -> None:
    record = predict("datalab", doc(corpus), SCHEMA, timeout=0.5)
    assert record["error"]["type"] == "VendorTimeout" and record["run_manifest"]["timed_out"]
    assert record["result"] == {"__error__": f"VendorTimeout: {record['error']['message']}"}
    (tmp_path / "unknown.pdf").write_bytes(b"%PDF-1.4\nno such document")
    assert predict("datalab", tmp_path / "unknown.pdf", SCHEMA, **FAST)["error"]["type"] == "VendorError"


def test_offline_providers_need_no_key(corpus, tmp_path) -> None:
    sample = Path(sample_manifest()).parent / "docs" / "INV-2024-0093.pdf"
    record = predict("pdftext", sample, {"properties": {"invoice_number": {"type": "string"}}})
    assert record["error"] is None and isinstance(record["result"], dict)
    served = predict("replay", doc(corpus, 3), SCHEMA, system="good", folder=str(corpus.predictions))
    assert served["result"]["invoice_id"] == gold(corpus, 3)["invoice_id"]
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / f"{doc(corpus).stem}.json").write_text("no json")
    assert predict("replay", doc(corpus), SCHEMA, system="s", folder=str(tmp_path))["result"] is None


def test_in_a_running_loop_and_as_a_coroutine(corpus, simulator) -> None:
    """As in a notebook, where a loop runs in the thread that a cell runs in."""

    async def notebook() -> tuple[Any, Any]:
        return predict("datalab", doc(corpus), SCHEMA, **FAST), await apredict("datalab", doc(corpus), SCHEMA, **FAST)

    one, other = asyncio.run(notebook())
    assert one["result"] == other["result"] == gold(corpus)


def test_calls_of_one_loop_share_the_limits_of_their_account(corpus, simulator) -> None:
    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(
            *(apredict("mistral", doc(corpus, n), SCHEMA, in_flight=3) for n in range(12)),
        )

    records = asyncio.run(together())
    assert [record["result"] for record in records] == [gold(corpus, n) for n in range(12)]
    assert simulator.stats()["mistral"]["peak_in_flight"] <= 3
    assert submissions(simulator, "mistral") == 12


def test_documents_of_one_name_are_not_mistaken_for_each_other(corpus, simulator, tmp_path) -> None:
    paths = []
    for number in (0, 1):
        (tmp_path / str(number)).mkdir()
        paths.append(tmp_path / str(number) / "invoice.pdf")
        paths[-1].write_bytes(doc(corpus, number).read_bytes())

    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(*(apredict("mistral", path, SCHEMA) for path in paths))

    assert [record["result"] for record in asyncio.run(together())] == [gold(corpus, 0), gold(corpus, 1)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"provider": "datlab"}, "did you mean datalab"),
        ({"provider": "datalab", "mdoe": "fast"}, "providers.datalab.mdoe: no such setting; did you mean mode"),
        ({"provider": "datalab", "options": {}}, "options: no such setting"),
        ({"provider": "datalab", "pdf": "none.pdf"}, "no document at .*/none.pdf"),
        ({"provider": "datalab", "schema": []}, "the schema must be a JSON object"),
        ({"provider": "datalab", "timeout": 0}, "timeout=0: wants a number of seconds above 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(corpus, simulator, given, said) -> None:
    with pytest.raises(RequestError, match=said):
        predict(**{"pdf": doc(corpus), "schema": SCHEMA, **given})
    assert submissions(simulator) == 0


def test_unusual_values_warn_and_are_sent(corpus, simulator) -> None:
    with pytest.warns(UserWarning, match="mode='turbo' is not one of"):
        predict("datalab", doc(corpus), SCHEMA, mode="turbo", **FAST)


def test_the_command_prints_one_record_and_tells_by_its_code(corpus, simulator, tmp_path, capsys) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    words = ["predict", "--provider", "datalab", "--doc", str(doc(corpus)), "--schema", str(tmp_path / "schema.json")]
    options = ["--options", '{"mode": "turbo", "poll_interval": 0.1}']
    code, out, err = called(*words, *options, "--no-overlay")
    assert code == 0 and json.loads(out)["result"] == gold(corpus)
    assert "warning: providers.datalab.mode='turbo'" in err
    code, out, _ = called(*words, *options, "--timeout", "0.05")
    assert code == 1 and json.loads(out)["error"]["type"] == "VendorTimeout"
    simulator.dials("datalab", key="another")
    assert called(*words, *options)[:2] == (3, "")
    for more, said in (
        (["--options", '{"timeout": 3}'], "timeout: no settings of a provider"),
        (["--options", "[]"], "cannot read []"),
    ):
        assert main([*words, *more]) == 2
        assert said in capsys.readouterr().err
    assert main(words[:3]) == 2
    assert "--doc, --schema must be given" in capsys.readouterr().err
