"""A vendor account at work, over real HTTP against the simulator: what is bought, once; what is recorded, and why."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import calls, layout, storage
from oeb_ray.cluster.account import Account
from oeb_ray.cluster.contract import Predicted
from oeb_ray.corpus.manifest import Corpus, load
from oeb_ray.errors import AccountFailure, LimitReached
from oeb_ray.plan import run_name
from oeb_ray.providers.registry import settings_for
from oeb_ray.records import Lane, PredictBatch, Run
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import SCHEMA, SmallCorpus, make_pdf_corpus

KEY = "canary-0815"


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_pdf_corpus(tmp_path / "corpus", documents=12)


class Setting:
    """An account, a run and a simulator; ``ask`` predicts every document at once.

    ``provider``: a chat model's id, where that is not the vendor's name; ``given``: its settings.
    """

    def __init__(
        self,
        corpus: SmallCorpus,
        out: Path,
        vendor: str,
        simulator: Simulator,
        *,
        provider: str = "",
        given: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.corpus: Corpus = load(str(corpus.manifest))
        self.out, self.vendor, self.simulator = str(out), vendor, simulator
        provider, given = provider or vendor, given or {}
        if vendor == "datalab":
            given["poll_interval"] = 0.1
        self.run = Run(
            run_name(provider, given),
            provider,
            settings_for(provider, given),
            {"timeout_s": 20.0, "address": f"{simulator.url}/{vendor}"} | options,
            Lane("test", 4, None, None, usd_per_doc=0.03),
        )

    def batch(self, position: int, again: bool = False) -> PredictBatch:
        return PredictBatch(self.out, self.run, (self.corpus.doc(position),), again)

    async def _ask(
        self, again: bool, member: dict[str, Any], positions: Sequence[int] | None = None
    ) -> list[Predicted]:
        account = Account("test")
        known = {"cap": 4, "rpm": None, "max_usd": None, "digest": "1", "spent": {}, "resumed": False, "paused": False}
        account.register("job", known | member)

        async def alive() -> None:
            while True:
                account.pool.ping("job")
                await asyncio.sleep(2)

        beating = asyncio.ensure_future(alive())
        places = range(len(self.corpus)) if positions is None else positions
        asked = (account.predict("job", self.batch(position, again)) for position in places)
        try:
            return await asyncio.gather(*asked)
        finally:
            beating.cancel()
            await account.close()

    def ask(self, again: bool = False, positions: Sequence[int] | None = None, **member: Any) -> list[Predicted]:
        return asyncio.run(self._ask(again, member, positions))

    def record(self, position: int) -> dict[str, Any]:
        found = json.loads(storage.read(layout.record(self.out, self.run.name, self.corpus.ids[position])))
        assert isinstance(found, dict)
        return found

    def submissions(self) -> Counter[str]:
        return Counter(self.simulator.stats()[self.vendor]["submissions"])


@pytest.fixture
def setting(corpus: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    monkeypatch.setattr("oeb_ray.providers.transport.WAITS", (0.1, 0.2, 0.3))
    open_ones: list[Simulator] = []

    def make(vendor: str, options: dict[str, Any] | None = None, **dials: Any) -> Setting:
        vendors = {vendor: {"latency": 0.05, "price": 0.03, "state_cost": vendor == "mistral"} | dials}
        if vendor != "mistral":
            del vendors[vendor]["state_cost"]
        profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
        simulator = Simulator(Profile.from_dict(profile | {"vendors": vendors}))
        open_ones.append(simulator.__enter__())
        return Setting(corpus, tmp_path / "out", vendor, simulator, **(options or {}))

    yield make
    for simulator in open_ones:
        simulator.__exit__(None, None, None)


@pytest.mark.parametrize("vendor", ["datalab", "mistral"])
def test_every_document_is_bought_once_and_recorded_with_its_cost(setting: Any, vendor: str) -> None:
    work = setting(vendor)
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert [receipt.error for receipt in receipts] == [None] * 12
    assert set(work.submissions().values()) == {1} and len(work.submissions()) == 12
    assert work.simulator.stats()[vendor]["peak_in_flight"] <= 4
    assert sum(receipt.usd or 0 for receipt in receipts) == pytest.approx(0.36)
    record = work.record(3)
    assert len(record["attempts"]) == 1 and record["attempts"][0]["outcome"]
    assert record["cost"]["usd"] == 0.03
    assert (record["job_id"] is not None) == (vendor == "datalab")
    assert KEY not in json.dumps(record)
    work.ask()
    assert set(work.submissions().values()) == {1}, "a second look buys nothing"


@pytest.mark.parametrize("vendor", ["datalab", "mistral"])
@pytest.mark.parametrize("fault", ["drop_after_body", "drop_in_answer", "fail_504_job_made"])
def test_an_answer_that_is_lost_is_not_bought_again(setting: Any, vendor: str, fault: str) -> None:
    work = setting(vendor, **{fault: 1.0})
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert {receipt.error_type for receipt in receipts} == {"Unreachable"}
    assert all(receipt.retryable for receipt in receipts)
    assert set(work.submissions().values()) == {1}
    work.ask()
    assert set(work.submissions().values()) == {1}
    work.simulator.dials(vendor, **{fault: 0.0})
    again = [receipt for ended in work.ask(again=True) for receipt in ended.receipts]
    assert [receipt.error for receipt in again] == [None] * 12
    assert [attempt["n"] for attempt in work.record(0)["attempts"]] == [1, 2]


def test_refusals_that_cost_nothing_are_tried_again_each_under_its_own_claim(setting: Any) -> None:
    work = setting("mistral", first_429=2, retry_after="0.2")
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert [receipt.error for receipt in receipts] == [None] * 12
    attempts = work.record(5)["attempts"]
    assert [(attempt["n"], attempt["reason"]) for attempt in attempts] == [
        (1, "first"), (2, "status 429"), (3, "status 429"),
    ]  # fmt: skip
    assert sum(receipt.usd or 0 for receipt in receipts) == pytest.approx(0.36)


def test_a_wish_to_wait_holds_for_the_whole_account(setting: Any) -> None:
    """BR-40"""
    work = setting("mistral", first_429=1, retry_after="1", latency=0.2)
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert [receipt.error for receipt in receipts] == [None] * 12
    log = work.simulator.log()
    refused = [line["mono"] for line in log if line["status"] == 429]
    assert refused
    hasty = [line["mono"] - at for at in refused for line in log if at + 0.2 < line["mono"] < at + 0.95]
    assert not hasty


def test_what_never_arrived_is_sent_again(setting: Any) -> None:
    """BR-44: a refused connection is the only loss that is tried again unasked."""
    work = setting("datalab")
    work.simulator.refuse(0.5)
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert [receipt.error for receipt in receipts] == [None] * 12
    assert set(work.submissions().values()) == {1}
    attempts = [attempt for position in range(12) for attempt in work.record(position)["attempts"]]
    assert any(attempt["outcome"].startswith("NotSent") for attempt in attempts)


@pytest.mark.parametrize("vendor", ["datalab", "mistral"])
@pytest.mark.parametrize("fault", ["drop_before_accept", "drop_after_headers"])
def test_a_connection_that_breaks_while_sending_is_not_tried_again(setting: Any, vendor: str, fault: str) -> None:
    """BR-44"""
    work = setting(vendor, **{fault: 1.0})
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert {receipt.error_type for receipt in receipts} == {"Unreachable"}
    assert work.simulator.stats()[vendor]["kinds"] == {"submit": 12}


def test_no_answer_until_the_time_is_up_is_one_submission(setting: Any) -> None:
    """BR-44"""
    work = setting("mistral", {"timeout_s": 1.0}, no_answer=1.0)
    receipts = [receipt for ended in work.ask(cap=12) for receipt in ended.receipts]
    assert {receipt.error_type for receipt in receipts} == {"VendorTimeout"}
    assert set(work.submissions().values()) == {1}


def test_a_bad_key_stops_the_account_before_a_second_document_is_sent(setting: Any) -> None:
    work = setting("datalab", key="another")
    ended = work.ask()
    assert {type(one.stopped) for one in ended} == {AccountFailure}
    assert not [receipt for one in ended for receipt in one.receipts]
    assert sum(work.submissions().values()) <= 1
    assert not storage.listed(storage.join(work.out, work.run.name, "records"))
    assert all(KEY not in str(one.stopped) for one in ended)


def test_max_usd_is_kept(setting: Any) -> None:
    work = setting("datalab")
    ended = work.ask(max_usd=0.2)
    bought = [receipt for one in ended for receipt in one.receipts]
    assert len(bought) == 6
    assert {type(one.stopped) for one in ended if one.stopped} == {LimitReached}
    assert work.simulator.stats()["datalab"]["billed"] == pytest.approx(0.18)


def test_a_job_whose_owner_died_is_polled_and_one_without_a_job_is_unknown(setting: Any) -> None:
    """What a kill leaves: a claim with a job id, a claim without, and a refusal."""
    work = setting("datalab")
    ids = work.corpus.ids
    owner = "dead-1-00000000"
    with_job = calls.new_attempt(ids[0], 1, "first", "test", owner)
    import httpx

    document = (work.corpus.doc(0).doc_path, Path(work.corpus.doc(0).doc_path).read_bytes())
    submitted = httpx.post(
        f"{work.simulator.url}/datalab/api/v1/extract", headers={"X-Api-Key": KEY},
        data={"page_schema": json.dumps(SCHEMA), "extraction_mode": "balanced", "output_format": "json"},
        files={"file": ("document.pdf", document[1], "application/pdf")},
    ).json()  # fmt: skip
    assert calls.claim(work.out, work.run.name, with_job)
    calls.note(work.out, work.run.name, with_job, job_id=submitted["request_id"])
    assert calls.claim(work.out, work.run.name, calls.new_attempt(ids[1], 1, "first", "test", owner))
    refused = calls.new_attempt(ids[2], 1, "first", "test", owner)
    assert calls.claim(work.out, work.run.name, refused)
    calls.note(work.out, work.run.name, refused, outcome=f"{calls.REFUSED} 503")
    receipts = {receipt.doc_id: receipt for ended in work.ask() for receipt in ended.receipts}
    assert receipts[ids[0]].error is None
    assert receipts[ids[1]].error_type == "Unreachable"
    assert receipts[ids[2]].error is None and receipts[ids[2]].attempts == 2
    stems = work.submissions()
    assert stems[ids[0]] == 1 and stems[ids[1]] == 0 and stems[ids[2]] == 1


def test_two_accounts_on_one_folder_buy_nothing_twice(setting: Any) -> None:
    work = setting("mistral", latency=0.3)

    async def both() -> list[list[Predicted]]:
        return await asyncio.gather(work._ask(False, {}), work._ask(False, {}))

    for ended in asyncio.run(both()):
        assert [receipt.error for one in ended for receipt in one.receipts] == [None] * 12
    assert set(work.submissions().values()) == {1}


def test_jobs_that_never_end_are_timeouts_with_their_job(setting: Any) -> None:
    work = setting("datalab", {"timeout_s": 1.5}, never_ends=1.0)
    receipts = [receipt for ended in work.ask(cap=12) for receipt in ended.receipts]
    assert {receipt.error_type for receipt in receipts} == {"VendorTimeout"}
    assert work.record(0)["job_id"]
    work.simulator.dials("datalab", never_ends=0.0)
    work.ask(again=True)
    assert set(work.submissions().values()) <= {1, 2}
