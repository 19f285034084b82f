"""Every vendor over real HTTP: what it answers when all is well, and what each kind of fault comes to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure
from oeb_ray.providers.direct import DirectVendor
from oeb_ray.providers.jobs import JobVendor
from oeb_ray.providers.registry import PAID
from tests.providers.wires import GOLD, JOB_VENDORS, KEY, Wire, in_a_hurry, wire

Open = Callable[..., Wire]
CANCELS = {name for name in JOB_VENDORS if type(PAID[name]).cancelling is not JobVendor.cancelling}
ALL = pytest.mark.parametrize("vendor", sorted(PAID))
MODELS = pytest.mark.parametrize("vendor", [name for name, one in PAID.items() if isinstance(one, DirectVendor)])
JOBS = pytest.mark.parametrize("vendor", JOB_VENDORS)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    in_a_hurry(monkeypatch)
    with ExitStack() as stack:

        def begin(vendor: str, **given: Any) -> Wire:
            made: AbstractContextManager[Wire] = wire(tmp_path, vendor, **given)
            return stack.enter_context(made)

        yield begin


def error_of(record: dict[str, Any]) -> tuple[str, int | None, bool]:
    """Type, status and whether it is transient; such a record has no prediction."""
    error = record["error"]
    assert error is not None and record["prediction_sha256"] is None
    assert record["result"]["__error__"].startswith(f"{error['type']}: ")
    return error["type"], error["status"], error["transient"]


# All is well


@ALL
def test_a_document_is_bought_once_and_its_record_says_all(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=3, latency=0.05)
    records = work.ask()
    assert [record["error"] for record in records] == [None] * 3
    assert work.prediction(work.docs[0].doc_id) == GOLD
    assert work.bought() == [3, 3]
    record = records[0]
    cost = record["cost"]
    assert cost["attempts"] == 1 and record["run_manifest"]["timed_out"] is False
    if PAID[vendor].states_usd:
        assert (cost["usd"], cost["credits"]) == (0.03, None)
    assert (record["job_id"] is not None) == (vendor in JOB_VENDORS)
    assert record["document"]["name_sent"] == "document.pdf"
    work.ask()
    assert work.bought() == [3, 3], "a second look buys nothing"


@ALL
def test_large_and_slow_answers_are_read_to_their_end(opened: Open, vendor: str) -> None:
    work = opened(vendor, huge=1.0, huge_mb=3, slow_body=0.3)
    assert work.ask()[0]["error"] is None and work.prediction(work.docs[0].doc_id) == GOLD


# Refusals


@ALL
@pytest.mark.parametrize(("fault", "status"), [("fail_500", 500), ("fail_503", 503)])
def test_a_server_that_fails_is_asked_four_times(opened: Open, vendor: str, fault: str, status: int) -> None:
    work = opened(vendor, **{fault: 1.0})
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", status, True)
    assert work.bought() == [4, 0] and [a["outcome"] for a in record["attempts"]] == [f"status {status}"] * 4
    assert record["cost"]["attempts"] == 4 and record["cost"]["unpriced"] == 0


@ALL
def test_a_429_is_waited_out_and_costs_a_claim_each(opened: Open, vendor: str) -> None:
    work = opened(vendor, first_429=2, retry_after="0.2")
    (record,) = work.ask()
    assert record["error"] is None and work.bought() == [3, 1]
    assert [a["reason"] for a in record["attempts"]] == ["first", "status 429", "status 429"]
    assert work.seconds > 0.4, "the vendor's wish counts where it is longer"


@ALL
def test_a_429_that_stays_is_the_documents_failure(opened: Open, vendor: str) -> None:
    work = opened(vendor, first_429=99)
    assert error_of(work.ask()[0]) == ("VendorError", 429, True) and work.bought() == [4, 0]


@ALL
def test_a_wait_beyond_the_budget_ends_at_once(opened: Open, vendor: str) -> None:
    work = opened(vendor, first_429=99, retry_after="86400")
    (record,) = work.ask()
    assert error_of(record) == ("VendorTimeout", None, False) and record["run_manifest"]["timed_out"]
    assert "86400 s" in record["error"]["message"] and work.seconds < 5


@ALL
def test_a_refused_document_is_asked_once(opened: Open, vendor: str) -> None:
    work = opened(vendor, error_400=1.0)
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", 400, False) and work.bought() == [1, 0]
    assert "could not be processed" in record["error"]["message"] and record["raw"]


@ALL
def test_a_rejected_key_stops_the_account_with_the_vendors_words(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=3, key="another")
    stopped = work.stop()
    status = 400 if vendor == "google" else 401
    assert isinstance(stopped, AccountFailure) and f"status {status}" in str(stopped) and len(str(stopped)) < 260
    assert sum(work.stats()["kinds"].values()) == 1, "the second document is not sent"


@ALL
def test_an_empty_account_stops_and_goes_on_once_it_is_filled(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=4, credit=0.06)
    with pytest.raises(AccountFailure):
        work.ask()
    assert work.stats()["billed"] == 0.06
    work.simulator.dials(vendor, credit=None)
    assert [record["error"] for record in work.ask()] == [None] * 4
    assert work.stats()["accepted"] == {doc.doc_id: 1 for doc in work.docs}


# Answers that are lost


@ALL
@pytest.mark.parametrize(
    ("fault", "status", "job_made"),
    [
        ("drop_before_accept", None, False),
        ("drop_after_headers", None, False),
        ("drop_after_body", None, True),
        ("drop_in_answer", None, True),
        ("fail_504_job_made", 504, True),
    ],
)
def test_what_may_have_arrived_is_sent_once(
    opened: Open, vendor: str, fault: str, status: int | None, job_made: bool
) -> None:
    work = opened(vendor, **{fault: 1.0})
    (record,) = work.ask()
    assert error_of(record) == ("Unreachable", status, status == 504)
    assert sum(work.stats()["accepted"].values()) == job_made
    assert (len(record["attempts"]), record["cost"]["unpriced"], record["job_id"]) == (1, 1, None)
    work.ask()
    assert sum(work.stats()["accepted"].values()) == job_made, "and not again unless it is asked for"
    work.simulator.dials(vendor, **{fault: 0.0})
    assert work.ask(again=True)[0]["error"] is None


@ALL
def test_no_answer_is_a_timeout_at_the_budget(opened: Open, vendor: str) -> None:
    work = opened(vendor, no_answer=1.0, options={"timeout_s": 0.6})
    (record,) = work.ask()
    assert error_of(record) == ("VendorTimeout", None, False) and work.seconds < 3
    assert work.bought() == [1, 1] and record["cost"]["unpriced"] == 1


@ALL
def test_what_never_arrived_is_sent_again(opened: Open, vendor: str) -> None:
    work = opened(vendor)
    work.simulator.refuse(0.15)
    (record,) = work.ask()
    assert record["error"] is None and work.bought() == [1, 1]
    refused = [attempt for attempt in record["attempts"] if (attempt["outcome"] or "").startswith("NotSent")]
    prepares = set(work.stats()["kinds"]) - {"submit", "poll"}
    assert not (refused and prepares), "what is free is repeated without a claim"


# Answers that are none


@ALL
def test_half_an_answer_is_unreadable(opened: Open, vendor: str) -> None:
    work = opened(vendor, malformed=1.0)
    (record,) = work.ask()
    assert error_of(record) == ("Unreadable", 200, False) and work.bought() == [1, 1]
    assert record["raw"] and (record["job_id"] is not None) == (vendor in JOB_VENDORS)


@ALL
def test_an_empty_extraction_is_no_answer(opened: Open, vendor: str) -> None:
    work = opened(vendor, empty=1.0)
    (record,) = work.ask()
    assert error_of(record)[0] == "Unreadable" and work.bought() == [1, 1]
    assert record["cost"]["usd"] == (0.03 if PAID[vendor].states_usd else None), "what was billed is kept"
    work.simulator.dials(vendor, empty=0.0)
    assert work.ask(again=True)[0]["error"] is None, "asked again when that is wished"


@ALL
def test_a_document_that_the_vendor_cannot_extract(opened: Open, vendor: str) -> None:
    work = opened(vendor, answers=None)
    (record,) = work.ask()
    assert error_of(record)[0] == "VendorError" and "No answer is known" in record["error"]["message"]
    assert record["job_id"] is None or record["job_id"] in record["error"]["message"]


@ALL
def test_a_key_that_is_printed_back_is_in_no_record(opened: Open, vendor: str) -> None:
    work = opened(vendor, bodies={"detail": f"bad {KEY}", "error": json.dumps({"k": KEY})})
    (record,) = work.ask()
    assert record["error"] and "[redacted]" in json.dumps(record["raw"])


# Jobs


@JOBS
def test_a_job_that_never_ends_is_a_timeout_with_its_id_and_is_cancelled(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=3, never_ends=1.0, options={"timeout_s": 1.0})
    records = work.ask()
    assert [error_of(record) for record in records] == [("VendorTimeout", None, False)] * 3
    assert all(record["job_id"] and record["run_manifest"]["timed_out"] for record in records)
    assert work.seconds < 4 and work.bought() == [3, 3]
    assert work.paths("cancel") == (3 if vendor in CANCELS else 0)
    assert work.stats()["running"] == (0 if vendor in CANCELS else 3)


@JOBS
@pytest.mark.parametrize("word", ["sleeping", "Canceled", "FAILED"])
def test_states_that_nobody_documented_end_too(opened: Open, vendor: str, word: str) -> None:
    work = opened(vendor, bodies={"status": word, "state": word}, options={"timeout_s": 0.7})
    (record,) = work.ask()
    assert error_of(record)[0] in ("VendorError", "VendorTimeout") and work.bought() == [1, 1]
    assert record["job_id"] and work.seconds < 3


@JOBS
def test_an_error_kept_in_a_200_is_no_answer(opened: Open, vendor: str) -> None:
    work = opened(vendor, bodies={"detail": "internal"})
    (record,) = work.ask()
    assert error_of(record) == ("Unreadable", 200, False)
    assert "internal" in record["error"]["message"] and record["job_id"] in record["error"]["message"]


@JOBS
def test_failed_polls_and_uploads_are_repeated_and_nothing_is_bought_again(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=4, latency=0.1, poll_503=0.3, poll_drop=0.2)
    assert [record["error"] for record in work.ask()] == [None] * 4
    outcomes = work.stats()["outcomes"]
    assert outcomes.get("poll_503", 0) + outcomes.get("poll_drop", 0) > 0
    assert work.bought() == [4, 4]


@JOBS
def test_a_job_out_of_sight_is_found_again_or_keeps_its_id(opened: Open, vendor: str) -> None:
    work = opened(vendor, documents=2, poll_404_first=2)
    assert [record["error"] for record in work.ask()] == [None] * 2
    assert work.bought() == [2, 2]


@JOBS
def test_a_job_that_stays_missing_is_polled_before_it_is_bought_anew(opened: Open, vendor: str) -> None:
    work = opened(vendor, poll_404_first=99)
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", 404, False) and record["job_id"]
    work.simulator.dials(vendor, poll_404_first=0)
    (again,) = work.ask(again=True)
    assert again["error"] is None and again["job_id"] == record["job_id"] and work.bought() == [1, 1]


@JOBS
def test_a_known_job_is_polled_and_never_uploaded_again(opened: Open, vendor: str) -> None:
    work = opened(vendor, never_ends=1.0, options={"timeout_s": 0.6})
    (first,) = work.ask()
    free = work.paths("upload")
    began = time.monotonic()
    (second,) = work.ask(again=True)
    assert time.monotonic() - began < 5 and second["error"]
    if vendor not in CANCELS:
        assert second["job_id"] == first["job_id"] and work.bought() == [1, 1] and work.paths("upload") == free


# Models


@MODELS
def test_prose_is_asked_for_again_and_each_completion_is_paid(
    opened: Open, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oeb_ray.providers.chat.pause_before_next", lambda tries: 0.05)
    work = opened(vendor, talk=1.0, options={"settings": {"attempts": 2}})
    (record,) = work.ask()
    assert error_of(record) == ("Unreadable", 200, False) and work.bought() == [2, 2]
    assert [attempt["reason"] for attempt in record["attempts"]] == ["first", "no usable answer"]
    assert len(record["raw"]["calls"]) == 2 and record["cost"]["tokens_out"] > 0


@MODELS
def test_what_was_cut_off_at_the_limit_of_tokens_is_bought_once(opened: Open, vendor: str) -> None:
    work = opened(vendor, cut_short=1.0, options={"settings": {"attempts": 2}})
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", 200, False) and work.bought() == [1, 1]
    assert "cut off at max_output_tokens=" in record["error"]["message"] and record["cost"]["tokens_out"] > 0


def test_a_failure_inside_a_200_is_a_failure_of_the_server(opened: Open) -> None:
    work = opened("openai", error_inside=1.0)
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", 500, True) and work.bought() == [4, 0]


# Documents, schemas, names


@ALL
@pytest.mark.parametrize(
    "content", [b"<!doctype html><title>Sign in</title>", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_what_is_no_document_is_refused_before_anything_is_sent(opened: Open, vendor: str, content: bytes) -> None:
    work = opened(vendor, content=content)
    (record,) = work.ask()
    assert error_of(record) == ("VendorError", None, False)
    assert work.stats()["requests"] == 0 and record["cost"]["attempts"] == 0


TREE = {
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/n"}},
    "$defs": {
        "n": {
            "type": "object",
            "properties": {"v": {"type": "string"}, "l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}},
        }
    },
}


@ALL
def test_a_schema_that_refers_to_itself_is_sent_as_it_is_or_refused_unsent(opened: Open, vendor: str) -> None:
    work = opened(vendor, schema=TREE, answers={"t": {"v": "a"}})
    (record,) = work.ask()
    assert work.seconds < 3
    if record["error"] is None:
        assert work.prediction(work.docs[0].doc_id) == {"t": {"v": "a"}} and work.bought() == [1, 1]
    else:
        assert error_of(record) == ("DialectError", None, False)
        assert work.stats()["requests"] == 0 and record["cost"]["attempts"] == 0


@pytest.mark.parametrize("vendor", sorted(set(JOB_VENDORS) - {"azure-cu"}))  # whose values are nodes of their own
def test_wrapped_values_become_plain_and_their_evidence_is_kept(opened: Open, vendor: str) -> None:
    schema = {
        "type": "object",
        "properties": {"total": {"type": "number"}, "party": {"type": "string"}, "party_meta": {"type": "string"}},
    }
    answer = {"total": {"value": 88.5, "page_number": 1}, "party": "Quay Co", "party_meta": "north", "total_score": 4}
    work = opened(vendor, schema=schema, answers=answer)
    (record,) = work.ask()
    assert record["error"] is None
    assert work.prediction(work.docs[0].doc_id) == {"total": 88.5, "party": "Quay Co", "party_meta": "north"}
    assert {item["key"] for item in record["raw"]["evidence"]} == {"page_number", "total_score"}


ODD_NAMES = [
    *("Rechnung № 5 – Zürich", "請求書", 'a"b', "a\r\nX-Evil: 1", "a\\b", "a;b=c", "50%25", " lead and trail "),
    *("x" * 240, "Form [A], copy (2)"),
]


@ALL
def test_documents_of_any_name_are_taken_and_their_ids_stay(opened: Open, vendor: str) -> None:
    work = opened(vendor, stems=ODD_NAMES, options={"send_name": "original"})
    records = work.ask()
    assert [record["error"] for record in records] == [None] * len(ODD_NAMES)
    assert {record["doc_id"] for record in records} == set(ODD_NAMES)
    sent = {record["document"]["name_sent"] for record in records}
    assert "Form [A], copy (2).pdf" in sent and not any(set(name) & set('"\r\n\\;%') for name in sent)
    assert work.bought() == [len(ODD_NAMES)] * 2
