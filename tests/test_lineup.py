"""Models of a price list: which are asked, what tokens come to, and where keys may stand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oeb_ray import envfile
from oeb_ray.config import composed, listed_prices, read_job
from oeb_ray.errors import OebError, RequestError
from oeb_ray.estimate import estimates
from oeb_ray.lineup import MODELS, PROVIDERS, selected
from oeb_ray.prices import Price, PriceList, cost, read_prices
from oeb_ray.providers.openrouter import OPENROUTER
from oeb_ray.providers.registry import PAID
from oeb_ray.records import Lane, Run
from tests.helpers import make_pdf_corpus

DATA = Path(os.environ.get("OEB_TEST_VECTORS") or Path(__file__).parent / "data")
VECTORS = [
    json.loads(line)
    for line in (DATA / "extractkit_vectors.jsonl" if DATA.is_dir() else DATA).read_bytes().split(b"\n")
    if line
]
LINEUP = ("corpus=sample", "experiment=extractkit")


def lines(kind: str) -> Any:
    chosen = [line for line in VECTORS if line["kind"] == kind]
    assert chosen
    return pytest.mark.parametrize("line", chosen, ids=[f"vector-extractkit-{line['id']}" for line in chosen])


@pytest.fixture(scope="module")
def prices() -> PriceList:
    return listed_prices("2026-07")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in PAID.values():
        for name in vendor.credential:
            monkeypatch.delenv(name, raising=False)
    for name in (PROVIDERS, MODELS):
        monkeypatch.delenv(name, raising=False)


@lines("select_models")
def test_models_are_selected_as_the_reference_does(line: dict[str, Any], prices: PriceList) -> None:
    expected = line["expect"]
    if "error" in expected:
        with pytest.raises(OebError) as caught:
            selected(prices, line["input"]["env"])
        assert all(name in str(caught.value) for name in expected["mentions"]) and caught.value.exit_code == 2
        return
    found = selected(prices, line["input"]["env"])
    assert list(found) == expected["providers"]
    listed = [(model, prices.models[name][model]) for name, models in found.items() for model in models]
    assert [
        {"name": model, "inputPerMTokUSD": price.given, "outputPerMTokUSD": price.made} for model, price in listed
    ] == expected["models"]


@lines("cost")
def test_tokens_come_to_what_they_do_in_the_reference(line: dict[str, Any]) -> None:
    given, expected = line["input"], line["expect"]["costUSD"]
    listed = given["pricing"]
    price = Price(listed["inputPerMTokUSD"], listed["outputPerMTokUSD"]) if listed else None
    found = cost(price, given["inputTokens"], given["outputTokens"])
    assert found is None if expected is None else found == pytest.approx(expected, rel=1e-9)


def test_tokens_from_a_cache_have_a_price_of_their_own() -> None:
    assert cost(Price(4, 20, 0.4), 1_000_000, 0, 500_000) == pytest.approx(2.2)
    assert cost(Price(4, 20), 1_000_000, 0, 500_000) == 4, "a list without that price reckons them as any other"
    assert cost(Price(4, 20, 0.4), 10, 0, 1_000_000) == pytest.approx(4e-6), "no more are cached than were read"
    assert cost(Price(4, 20), None, 5) is None


def test_what_is_no_price_is_named() -> None:
    problems: list[str] = []
    read_prices({"date": 2026, "models": {"openai": {"a": {"in": 1}, "b": {"in": -1, "out": 2}, "c": 3}}}, problems)
    assert len(problems) == 4 and all("prices." in problem for problem in problems)
    with pytest.raises(RequestError, match=r"2026-08: choose|2026-07"):
        composed(["corpus=sample", "prices=2026-70"])


def test_the_experiment_asks_every_model_whose_key_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setenv(MODELS, "gemini-2.5-pro claude-sonnet-5")
    job = read_job(composed(LINEUP))
    assert {name: entry["options"] for name, entry in job.providers.items()} == {
        "anthropic": [{"model": "claude-sonnet-5"}],
        "google": [{"model": "gemini-2.5-pro"}],
    }
    assert all(entry["evidence"] is True for entry in job.providers.values()) and job.scorers == ("field_accuracy",)
    monkeypatch.setenv(MODELS, "gpt-5.4-mini")
    with pytest.raises(RequestError, match=r"gpt-5\.4-mini"):
        read_job(composed(LINEUP))


def test_a_line_up_without_prices_or_keys_is_refused() -> None:
    with pytest.raises(OebError, match="GOOGLE_GENERATIVE_AI_API_KEY"):
        read_job(composed(LINEUP))
    with pytest.raises(RequestError, match="price list"):
        read_job(composed(["corpus=sample", "lineup={}", "~prices"]))


def test_providers_that_are_not_chosen_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    words = [*LINEUP, "provider=[openai,pdftext]", "providers.openai.in_flight=9"]
    job = read_job(composed(words))
    assert list(job.providers) == ["openai", "pdftext"] and len(job.providers["openai"]["options"]) == 3
    assert job.providers["openai"]["in_flight"] == 9, "what a provider's own entry says goes before"
    monkeypatch.setenv(PROVIDERS, "anthropic")
    with pytest.raises(RequestError, match="anthropic: not among the providers"):
        read_job(composed(words))
    for wrong, said in (("lineup=3", "wants settings"), ("provider=[pdftext]", "choose providers of the price list")):
        with pytest.raises(RequestError, match=said):
            read_job(composed([*LINEUP, wrong]))


def test_an_estimate_says_when_it_is_one_of_list_prices(prices: PriceList) -> None:
    def receipt(usd: float | None) -> Any:
        return SimpleNamespace(error=None, usd=usd, credits=None, wall_s=2.0, tokens_in=1000, tokens_out=100)

    def told(model: str, usd: float | None) -> Any:
        run = Run("r", "openai", {"model": model}, lane=Lane("a", 4, None, None))
        made: Any = SimpleNamespace(run=run, receipts={"a": receipt(usd)}, predict=[1, 2])
        plan: Any = SimpleNamespace(runs=[made], prices=prices)
        return estimates(plan)["r"]

    assert told("gpt-5.6-sol", None).usd == pytest.approx(2 * (1000 * 5 + 100 * 30) / 1e6)
    assert told("gpt-5.6-sol", None).basis.endswith("at prices of 2026-07-12")
    stated = told("gpt-5.6-sol", 0.5)
    assert stated.usd == 1.0 and "prices" not in stated.basis, "what was stated is not mixed with what is listed"
    assert told("of-a-later-day", None).usd is None


# --- .env ---------------------------------------------------------------------------------------------------------


def test_the_example_names_every_key() -> None:
    text = (Path(__file__).parent.parent / ".env.example").read_text()
    names = {name for vendor in (*PAID.values(), OPENROUTER) for name in vendor.credential}
    assert {name for name in (*names, PROVIDERS, MODELS, "DOCILE_TOKEN", "HF_TOKEN") if name not in text} == set()
    assert not [line for line in text.splitlines() if "=" in line and line.partition("=")[2] and line[0] != "#"]


def test_the_file_fills_in_what_is_not_set_and_overrides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    envfile.load()
    (tmp_path / ".env").write_text("OPENAI_API_KEY='from file'\nexport EVAL_MODELS=a,$HOME # b\nGOOGLE_API_KEY=\n")
    for name in ("OPENAI_API_KEY", MODELS, "GOOGLE_API_KEY"):  # so that all of them are put back
        monkeypatch.setenv(name, "here")
    envfile.load()
    assert os.environ["OPENAI_API_KEY"] == os.environ[MODELS] == "here"
    for name in ("OPENAI_API_KEY", MODELS, "GOOGLE_API_KEY"):
        del os.environ[name]
    envfile.load()
    assert (os.environ["OPENAI_API_KEY"], os.environ[MODELS]) == ("from file", "a,$HOME")
    assert os.environ["GOOGLE_API_KEY"] == "", "which is no key"
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(RequestError, match=r"cannot read .*\.env"):
        envfile.load()


@pytest.mark.parametrize("command", [["oeb_ray", "benchmark"], ["jobs.benchmark"]])
def test_commands_and_jobs_take_keys_from_the_file_and_show_none(tmp_path: Path, command: list[str]) -> None:
    corpus = make_pdf_corpus(tmp_path / "corpus", 1)
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY='from file'\nEVAL_MODELS=gpt-5.4-mini\n")
    words = ["experiment=extractkit", "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "dry_run=true",
             "cluster=inline", "scorer=[field_matching]"]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent), MODELS: "claude-haiku-4-5"}
    ended = subprocess.run(
        [sys.executable, "-m", *command, *words], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0 and "claude-haiku-4-5" in said and "from file" not in said
