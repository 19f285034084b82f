"""The simulator over real HTTP: both protocols, every dial, the books, and hostile requests."""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from oeb_ray.errors import RequestError
from oeb_ray.simulator import Dials, Profile, Simulator
from oeb_ray.simulator.account import Window

KEY = "sk-secret-of-the-tests"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
STEMS = [f"doc {number:02}" for number in range(40)]
Start = Callable[..., Simulator]


def pdf(stem: str) -> bytes:
    return b"%PDF-1.7 " + stem.encode() * 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    for part in ("docs", "answers", "bodies"):
        (folder / part).mkdir()
    for stem in STEMS:
        (folder / "docs" / f"{stem}.pdf").write_bytes(pdf(stem))
        (folder / "answers" / f"{stem}.json").write_text(json.dumps({"name": stem}))
    (folder / "bodies" / f"{STEMS[3]}.json").write_bytes(b"<html>")
    return folder


@pytest.fixture
def start(corpus: Path) -> Iterator[Start]:
    """Starts simulators with dials for both vendors, and ends them."""
    running = []

    def begin(seed: int = 0, log: str = "", **dials: Any) -> Simulator:
        vendors = {"datalab": dials, "mistral": dials}
        given = {"seed": seed, "answers": "answers", "documents": "docs", "log": log, "vendors": vendors}
        running.append(Simulator(Profile.from_dict(given, str(corpus))))
        return running[-1]

    yield begin
    for simulator in running:
        simulator.close()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20) as opened:
        yield opened


def datalab(client: httpx.Client, simulator: Simulator, stem: str = STEMS[0], key: str = KEY) -> httpx.Response:
    return client.post(
        f"{simulator.url}/datalab/api/v1/extract",
        headers={"X-Api-Key": key},
        files={"file": (f"{stem}.pdf", pdf(stem), "application/pdf")},
        data={"page_schema": json.dumps(SCHEMA), "extraction_mode": "balanced", "output_format": "json"},
    )


def mistral_body(stem: str) -> dict[str, Any]:
    url = "data:application/pdf;base64," + base64.b64encode(pdf(stem)).decode()
    return {
        "model": "mistral-ocr-latest",
        "document": {"type": "document_url", "document_url": url},
        "document_annotation_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "schema": SCHEMA, "strict": False},
        },
    }


def mistral(client: httpx.Client, simulator: Simulator, stem: str = STEMS[0], key: str = KEY) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return client.post(f"{simulator.url}/mistral/v1/ocr", headers=headers, json=mistral_body(stem))


BOTH = pytest.mark.parametrize(("send", "vendor"), [(datalab, "datalab"), (mistral, "mistral")])
Send = Callable[..., httpx.Response]


def poll(client: httpx.Client, simulator: Simulator, job: str, key: str = KEY) -> httpx.Response:
    return client.get(f"{simulator.url}/datalab/api/v1/extract/{job}", headers={"X-Api-Key": key})


def finished(client: httpx.Client, simulator: Simulator, job: str) -> dict[str, Any]:
    for _ in range(500):
        answer = poll(client, simulator, job)
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        if body["status"] != "processing":
            return body
        time.sleep(0.01)
    raise AssertionError("the job did not end")


def outcome(call: Callable[[], httpx.Response]) -> str:
    """The status, or the name of what httpx raises."""
    try:
        return str(call().status_code)
    except httpx.HTTPError as error:
        return type(error).__name__


# The protocols


def test_datalab_from_submission_to_cost(start: Start, client: httpx.Client) -> None:
    simulator = start(latency=0.15, price=0.025)
    made = datalab(client, simulator).json()
    assert set(made) == {"success", "error", "request_id", "request_check_url", "versions"} and made["success"]
    assert made["request_check_url"] == f"{simulator.url}/datalab/api/v1/extract/{made['request_id']}"
    assert poll(client, simulator, made["request_id"]).json() == {"status": "processing", "success": True}
    assert simulator.stats()["datalab"]["in_flight"] == 1
    began = time.monotonic()
    done = finished(client, simulator, made["request_id"])
    assert time.monotonic() - began < 1 and done["status"] == "complete" and done["success"]
    assert json.loads(done["extraction_schema_json"]) == {"name": STEMS[0]}
    assert done["cost_breakdown"]["final_cost_cents"] == 2.5
    stats = simulator.stats()["datalab"]
    assert stats["in_flight"] == stats["running"] == 0 and stats["peak_in_flight"] == 1
    assert stats["submissions"] == stats["accepted"] == {STEMS[0]: 1} and stats["billed"] == 0.025
    assert 0.1 < stats["slot_seconds"] < 1
    assert finished(client, simulator, made["request_id"]) == done, "a done job can be polled again"


@pytest.mark.parametrize("state_cost", [False, True])
def test_mistral_in_one_call(start: Start, client: httpx.Client, state_cost: bool) -> None:
    simulator = start(latency=0.1, price=0.005, state_cost=state_cost)
    began = time.monotonic()
    answer = mistral(client, simulator)
    assert time.monotonic() - began >= 0.1 and answer.status_code == 200
    body = answer.json()
    assert json.loads(body["document_annotation"]) == {"name": STEMS[0]} and body["pages"][0]["index"] == 0
    usage = {"pages_processed": 1, "doc_size_bytes": len(pdf(STEMS[0]))}
    assert body["usage_info"] == usage | ({"cost": 0.005} if state_cost else {})
    assert simulator.stats()["mistral"]["billed"] == 0.005


@BOTH
@pytest.mark.parametrize("missing", ["error", "empty"])
def test_a_document_without_an_answer(
    start: Start, client: httpx.Client, send: Send, vendor: str, missing: str
) -> None:
    simulator = start(missing=missing, price=1)
    answer = send(client, simulator, "unknown")
    body = finished(client, simulator, answer.json()["request_id"]) if vendor == "datalab" else answer.json()
    if missing == "empty":
        assert body["extraction_schema_json" if vendor == "datalab" else "document_annotation"] == "{}"
    else:
        assert (body.get("status"), answer.status_code) == (("error", 200) if vendor == "datalab" else (None, 422))
    (document,) = simulator.stats()[vendor]["accepted"]
    assert len(document) == 64 and simulator.stats()[vendor]["billed"] == (missing == "empty")


# Faults of submissions: what the client sees, and whether a job was made

SEEN = [
    ("drop_before_accept", "ReadError", "ReadError", False),
    ("drop_after_headers", "ReadError", "ReadError", False),
    ("drop_after_body", "ReadError", "ReadError", True),
    ("drop_in_answer", "ReadError", "ReadError", True),
    ("no_answer", "ReadTimeout", "ReadTimeout", True),
    ("fail_500", "500", "500", False),
    ("fail_503", "503", "503", False),
    ("error_400", "400", "400", False),
    ("fail_504_job_made", "504", "504", True),
]


@pytest.mark.parametrize(("fault", "of_datalab", "of_mistral", "made"), SEEN)
def test_faults_of_submissions(start: Start, fault: str, of_datalab: str, of_mistral: str, made: bool) -> None:
    simulator = start(price=0.5, **{fault: 1.0})
    for send, vendor, expected in ((datalab, "datalab", of_datalab), (mistral, "mistral", of_mistral)):
        with httpx.Client(timeout=httpx.Timeout(20, read=0.3)) as client:
            seen = outcome(lambda send=send, client=client: send(client, simulator))  # type: ignore[misc]
        # A request that is cut while it is sent can fail in either half.
        assert seen == expected or (fault.startswith("drop") and seen in ("WriteError", "RemoteProtocolError"))
        for _ in range(100):
            if not simulator.stats()[vendor]["in_flight"]:
                break
            time.sleep(0.02)
        stats = simulator.stats()[vendor]
        assert stats["in_flight"] == 0 and stats["outcomes"] == {fault: 1}
        unread = fault in ("drop_before_accept", "drop_after_headers")
        assert stats["unread"] == unread and stats["submissions"] == ({} if unread else {STEMS[0]: 1})
        assert stats["accepted"] == ({STEMS[0]: 1} if made else {}) and stats["billed"] == 0.5 * made
    entry = simulator.log()[-1]
    assert entry["fault"] == fault and entry["accepted"] == made
    assert entry["status"] == (int(expected) if expected.isdigit() else 200 if fault == "drop_in_answer" else None)


def test_half_an_answer_arrives_before_the_reset(start: Start) -> None:
    simulator = start(drop_in_answer=1.0)
    body = json.dumps(mistral_body(STEMS[0])).encode()
    with socket.create_connection(("127.0.0.1", int(simulator.url.rsplit(":", 1)[1])), timeout=5) as end:
        end.sendall(b"POST /mistral/v1/ocr HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        received = b""
        with pytest.raises(ConnectionResetError):
            while piece := end.recv(1000):
                received += piece
    head, _, half = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert len(half) == length // 2 and half.startswith(b'{"model"')


def test_a_large_document_is_cut_while_it_is_sent(start: Start) -> None:
    simulator = start(drop_after_headers=1.0)
    with httpx.Client(timeout=20) as client, pytest.raises(httpx.TransportError):
        client.post(f"{simulator.url}/datalab/api/v1/extract", files={"file": ("x.pdf", b"x" * 30_000_000)})
    assert simulator.stats()["datalab"]["unread"] == 1


@BOTH
def test_answers_that_are_no_answers(start: Start, client: httpx.Client, send: Send, vendor: str) -> None:
    simulator = start(huge_mb=3)

    def last(**dials: float) -> httpx.Response:
        simulator.dials(vendor, **({"malformed": 0, "empty": 0, "huge": 0} | dials))
        answer = send(client, simulator)
        return poll(client, simulator, answer.json()["request_id"]) if vendor == "datalab" else answer

    text = "extraction_schema_json" if vendor == "datalab" else "document_annotation"
    malformed = last(malformed=1)
    assert malformed.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        malformed.json()
    assert last(empty=1).json()[text] == "{}"
    huge = last(huge=1)
    assert 3e6 < len(huge.content) < 3.01e6 and json.loads(huge.json()[text]) == {"name": STEMS[0]}
    assert simulator.stats()[vendor]["accepted"] == {STEMS[0]: 3}


def test_bodies_are_sent_byte_for_byte(start: Start, client: httpx.Client) -> None:
    simulator = start(bodies="bodies")
    made = datalab(client, simulator, STEMS[3]).json()["request_id"]
    assert poll(client, simulator, made).content == mistral(client, simulator, STEMS[3]).content == b"<html>"
    assert mistral(client, simulator).json()["document_annotation"] == json.dumps({"name": STEMS[0]})


def test_a_slow_body(start: Start, client: httpx.Client) -> None:
    simulator = start(slow_body=0.4)
    began = time.monotonic()
    assert mistral(client, simulator).status_code == 200 and 0.4 <= time.monotonic() - began < 2


def test_a_job_that_never_ends(start: Start, client: httpx.Client) -> None:
    simulator = start(never_ends=1.0, concurrent=1)
    made = datalab(client, simulator).json()["request_id"]
    time.sleep(0.1)
    assert poll(client, simulator, made).json()["status"] == "processing"
    assert datalab(client, simulator, STEMS[1]).status_code == 429, "it holds its slot"
    assert outcome(
        lambda: client.post(f"{simulator.url}/mistral/v1/ocr", json=mistral_body(STEMS[0]), timeout=0.2)
    ) == ("ReadTimeout")


def test_faults_of_polls(start: Start, client: httpx.Client) -> None:
    simulator = start(poll_404_first=2)
    made = datalab(client, simulator).json()["request_id"]
    assert [poll(client, simulator, made).status_code for _ in range(3)] == [404, 404, 200]
    simulator.dials("datalab", poll_503=1, poll_404_first=0)
    assert poll(client, simulator, made).status_code == 503
    simulator.dials("datalab", poll_503=0, poll_drop=1)
    with pytest.raises(httpx.ReadError):
        poll(client, simulator, made)
    simulator.dials("datalab", poll_drop=0)
    assert poll(client, simulator, made).json()["status"] == "complete"
    assert simulator.stats()["datalab"]["accepted"] == {STEMS[0]: 1}
    assert poll(client, simulator, "rq-none").status_code == 404


# Limits


@BOTH
def test_requests_per_minute(start: Start, client: httpx.Client, send: Send, vendor: str) -> None:
    simulator = start(rpm=3, retry_after="7")
    answers = [send(client, simulator, stem) for stem in STEMS[:5]]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[3].headers["retry-after"] == "7" and "retry-after" not in answers[0].headers
    stats = simulator.stats()[vendor]
    assert stats["peak_requests_60s"] == 5 and stats["peak_counted_60s"] == 3 and stats["outcomes"]["rate"] == 2
    assert len(stats["submissions"]) == 5 and len(stats["accepted"]) == 3
    if vendor == "datalab":
        assert poll(client, simulator, answers[0].json()["request_id"]).status_code == 200
        simulator.dials(vendor, polls_count=True)
        assert poll(client, simulator, answers[0].json()["request_id"]).status_code == 429


def test_the_window_slides() -> None:
    window = Window()
    for now in (0.0, 1.0, 59.9, 60.5, 60.2):
        window.add(now)
    assert window.peak == 4 and window.count(60.99) == 4 and window.count(61.0) == 3 and window.count(200.0) == 0


@BOTH
def test_jobs_at_once(start: Start, send: Send, vendor: str) -> None:
    simulator = start(concurrent=2, latency=0.4)
    with httpx.Client(timeout=20) as client, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda stem: send(client, simulator, stem), STEMS[:6]))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429, 429]
        stats = simulator.stats()[vendor]
        assert 2 <= stats["peak_in_flight"] <= 6 and stats["outcomes"]["busy"] == 4
        time.sleep(0.5)
        assert send(client, simulator, STEMS[7]).status_code == 200


def test_a_done_job_frees_its_slot_before_the_client_learns_of_it(start: Start, client: httpx.Client) -> None:
    simulator = start(latency=0.005, concurrent=1)
    for stem in STEMS:
        finished(client, simulator, datalab(client, simulator, stem).json()["request_id"])
    assert simulator.stats()["datalab"]["peak_in_flight"] == 1


def test_retry_after_in_each_form(start: Start, client: httpx.Client) -> None:
    simulator = start(first_429=1)
    seen = []
    forms = ["", "2", "soon", "3|11", "ms:1500", "date:5", "date:-5"]
    for form, stem in zip(forms, STEMS, strict=False):
        simulator.dials("mistral", retry_after=form)
        answer = mistral(client, simulator, stem)
        assert answer.status_code == 429 and mistral(client, simulator, stem).status_code == 200
        seen.append(answer)
    lists = [answer.headers.get_list("retry-after") for answer in seen]
    assert lists[:5] == [[], ["2"], ["soon"], ["3", "11"], []]
    assert seen[4].headers["retry-after-ms"] == "1500"
    ahead = [parsedate_to_datetime(only).timestamp() - time.time() for (only,) in lists[5:]]
    assert 4 < ahead[0] <= 6 and -6 < ahead[1] <= -4


# The account


@BOTH
def test_only_the_key_is_accepted(start: Start, client: httpx.Client, send: Send, vendor: str) -> None:
    simulator = start(key=KEY)
    wrong = send(client, simulator, key="sk-wrong")
    assert wrong.status_code == 401 and simulator.stats()[vendor]["accepted"] == {}
    assert vendor != "datalab" or wrong.json() == {"detail": "Invalid API key provided"}
    made = send(client, simulator)
    assert made.status_code == 200
    assert vendor != "datalab" or poll(client, simulator, made.json()["request_id"], "other").status_code == 401


@BOTH
def test_credit_is_used_up(start: Start, client: httpx.Client, send: Send, vendor: str) -> None:
    simulator = start(price=0.1, credit=0.3)
    answers = [send(client, simulator, stem) for stem in STEMS[:5]]
    empty = 403 if vendor == "datalab" else 402
    assert [answer.status_code for answer in answers] == [200, 200, 200, empty, empty]
    assert vendor != "datalab" or answers[-1].json() == {"detail": "Your subscription has expired"}
    assert simulator.stats()[vendor]["billed"] == 0.3
    simulator.dials(vendor, credit=None)
    assert send(client, simulator).status_code == 200


def test_the_log_never_holds_a_key(start: Start, client: httpx.Client, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"torn')
    simulator = start(key=KEY, log=str(path))
    for send in (datalab, mistral):
        assert [send(client, simulator, key=key).status_code for key in (KEY, "sk-wrong-one")] == [200, 401]
    client.get(f"{simulator.url}/mistral/v1/{KEY}?key={KEY}", headers={"Authorization": f"Bearer {KEY}"})
    assert KEY not in repr(simulator.log()) + json.dumps(simulator.stats()) + repr(Dials(key=KEY))
    lines = path.read_text().splitlines()
    assert lines[0] == '{"torn' and [json.loads(line) for line in lines[1:]] == simulator.log() and len(lines) == 6
    assert KEY not in path.read_text() and "sk-wrong" not in path.read_text()
    keys = [entry["key"] for entry in simulator.log()]
    assert len(keys[0]) == 8 and keys[0] == keys[2] == keys[4] and keys[1] == keys[3] != keys[0]
    assert {"mono", "wall", "vendor", "kind", "document", "job", "accepted", "billed", "status", "in_flight"} <= set(
        simulator.log()[0]
    )


# Dice


def round_of(simulator: Simulator, stems: list[str]) -> dict[str, list[str]]:
    with httpx.Client(timeout=20) as client:
        return {stem: [outcome(lambda s=stem: mistral(client, simulator, s)) for _ in range(3)] for stem in stems}  # type: ignore[misc]


def test_a_seed_replays_whatever_the_order(start: Start) -> None:
    shares = {"fail_500": 0.2, "fail_503": 0.2, "drop_after_body": 0.2, "error_400": 0.1}
    first = start(7, **shares)
    seen = round_of(first, STEMS)
    assert round_of(start(7, **shares), STEMS[::-1]) == seen != round_of(start(8, **shares), STEMS)
    counts = first.stats()["mistral"]["outcomes"]
    assert all(0.6 * share < counts[fault] / 120 < 1.5 * share for fault, share in shares.items()), counts
    first.reset()
    assert first.stats()["mistral"]["outcomes"] == {} and first.log() == []
    assert round_of(first, STEMS) == seen, "after a reset it is the same round"


def test_latencies_spread(start: Start) -> None:
    simulator = start(latency=0.1, latency_spread=1.0)
    with httpx.Client(timeout=20) as client, ThreadPoolExecutor(20) as threads:
        seconds = list(threads.map(lambda stem: mistral(client, simulator, stem).elapsed.total_seconds(), STEMS))
    assert min(seconds) < 0.05 and max(seconds) > 0.2 and 0.05 < sum(seconds) / len(seconds) < 0.25


# Controls


def test_controls_over_http(start: Start, client: httpx.Client) -> None:
    simulator = start()
    assert mistral(client, simulator).status_code == 200
    url = simulator.url
    assert client.get(f"{url}/stats").json()["mistral"]["accepted"] == {STEMS[0]: 1}
    assert len(client.get(f"{url}/log").json()) == 1
    assert client.post(f"{url}/dials", json={"mistral": {"fail_503": 1}}).status_code == 200
    assert mistral(client, simulator).status_code == 503
    wrong = client.post(f"{url}/dials", json={"mistral": {"fail_503": 0, "fail_50": 1, "rpm": "x"}})
    assert wrong.status_code == 400 and "did you mean fail_50" in wrong.text and "rpm" in wrong.text
    assert mistral(client, simulator).status_code == 503, "all or nothing"
    assert client.post(f"{url}/dials", content=b"[" * 100_000).status_code == 400
    assert client.post(f"{url}/dials", json={"nobody": {}}).status_code == 400
    assert client.post(f"{url}/reset").status_code == 200
    assert client.get(f"{url}/stats").json()["mistral"]["requests"] == 0


def test_connections_are_refused_for_a_time(start: Start, client: httpx.Client) -> None:
    simulator = start()
    assert mistral(client, simulator).status_code == 200
    simulator.refuse(0.5)
    with pytest.raises(httpx.ConnectError):
        mistral(client, simulator)
    time.sleep(0.7)
    assert mistral(client, simulator).status_code == 200
    assert simulator.stats()["mistral"]["submissions"] == {STEMS[0]: 2}
    assert client.post(f"{simulator.url}/refuse", json={"seconds": 30}).status_code == 200
    time.sleep(0.2)
    assert outcome(lambda: mistral(client, simulator)) == "ConnectError"


def test_serve_in_the_foreground(corpus: Path, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"answers": str(corpus / "answers"), "vendors": {"mistral": {"no_answer": 1}}}))
    code = "import sys; from oeb_ray.simulator import *; serve(Profile.from_file(sys.argv[1]), int(sys.argv[2]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(profile), "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/stats").status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/mistral/v1/ocr", json=mistral_body("x"), timeout=0.2)
        os.kill(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        assert process.returncode == -signal.SIGTERM and not errors
    finally:
        process.kill()
        process.wait()


# What is refused


def test_profiles_name_all_their_problems(corpus: Path, tmp_path: Path) -> None:
    given = {
        "answer": "x",
        "seed": "1",
        "vendors": {
            "datalb": {},
            "datalab": {"latency": "fast", "rpm": 1.5, "polls_count": 1, "empty": 2, "key": 5, "malforme": 1},
            "mistral": {"fail_500": 0.7, "empty": 0.7},
        },
    }
    with pytest.raises(RequestError) as refused:
        Profile.from_dict(given)
    text = str(refused.value)
    assert all(f"datalab.{name}" in text for name in given["vendors"]["datalab"]), text  # type: ignore[index]
    for word in ("11 problems", "answer: unknown, did you mean answers?", "seed", "did you mean datalab?", "add up to"):
        assert word in text, text
    wrong: list[Any] = [
        {"retry_after": "a\nb"},
        {"retry_after": "date:x"},
        {"latency": float("nan")},
        {"missing": "?"},
        [],
    ]
    for dials in wrong:
        with pytest.raises(RequestError):
            Profile.from_dict({"answers": "x", "vendors": {"mistral": dials}})
    for path, content in (("none.json", None), ("bad.json", "{"), ("list.json", "[]"), ("deep.json", "[" * 99_999)):
        if content is not None:
            (tmp_path / path).write_text(content)
        with pytest.raises(RequestError):
            Profile.from_file(str(tmp_path / path))
    with pytest.raises(RequestError, match="holds no file"):
        Simulator(Profile(str(corpus / "answers"), documents=str(corpus / "nowhere")))
    (corpus / "profile.json").write_text(json.dumps({"answers": "answers", "vendors": {"mistral": {"credit": None}}}))
    assert Profile.from_file(str(corpus / "profile.json")).answers == str(corpus / "answers")


def test_hostile_requests(start: Start, client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    simulator = start()
    submit, ocr = f"{simulator.url}/datalab/api/v1/extract", f"{simulator.url}/mistral/v1/ocr"
    deep = b'{"model": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    form = {"content-type": "multipart/form-data; boundary=x"}
    for content in (b"", b"x", b"--x\r\n\r\n", b"--x\r\ncontent-disposition: form-data\r\n\r\na\r\n--x--", b"--x--"):
        assert 400 <= client.post(submit, content=content, headers=form).status_code < 500
    assert client.post(submit, content=b"x", headers={"content-type": "multipart/form-data"}).status_code == 400
    assert client.post(submit, json={}).status_code == 422
    file = {"file": ("x.pdf", b"x")}
    for schema in ("", "no", "[]", "{}", deep.decode(), '{"properties": 1}'):
        assert 400 <= client.post(submit, files=file, data={"page_schema": schema}).status_code < 500
    assert client.post(submit, files=file).status_code == 422
    assert client.post(submit, data={"page_schema": "{}", "file": "text"}).status_code == 422
    for body in (b"", b"[]", b"\xff", b'"x"', deep, b'{"model": "m", "document": 3}'):
        assert client.post(ocr, content=body).status_code == 422
    for url in (
        "",
        "https://example.org/x.pdf",
        "data:application/pdf;base64,%%",
        "data:application/pdf;base64,\u00e9",
    ):
        given = mistral_body(STEMS[0]) | {"document": {"type": "document_url", "document_url": url}}
        assert client.post(ocr, json=given).status_code == 422
    for method in ("GET", "PUT", "DELETE"):
        assert client.request(method, ocr).status_code == 404
    assert client.get(f"{simulator.url}/datalab/api/v1/extract/%2e%2e%2f%00").status_code == 404
    with socket.create_connection(("127.0.0.1", int(simulator.url.rsplit(":", 1)[1])), timeout=5) as end:
        end.sendall(b"POST /mistral/v1/ocr HTTP/1.1\r\nContent-Length: nine\r\n\r\n")
        assert b" 400 " in end.recv(1000)
    with socket.create_connection(("127.0.0.1", int(simulator.url.rsplit(":", 1)[1])), timeout=5) as end:
        end.sendall(b"POST /mistral/v1/ocr HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{")
    assert all(vendor["accepted"] == {} for vendor in simulator.stats().values())
    assert mistral(client, simulator).status_code == 200
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def test_bodies_are_bounded(start: Start, client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    simulator = start()
    head = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 400000000\r\n\r\n"
    for path in (b"mistral/v1/ocr", b"datalab/api/v1/extract"):
        with socket.create_connection(("127.0.0.1", int(simulator.url.rsplit(":", 1)[1])), timeout=5) as end:
            end.sendall(head % path)
            assert b" 413 " in end.recv(1000)

    def endless() -> Iterator[bytes]:
        for _ in range(301):
            yield b" " * (1 << 20)

    assert client.post(f"{simulator.url}/mistral/v1/ocr", content=endless()).status_code == 413
    assert not [record for record in caplog.records if record.exc_info], caplog.text


# Chat models, and answers from files


def chat_body(url: str, model: Any = "org/m") -> dict[str, Any]:
    part = {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    return {"model": model, "messages": [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}]}


def chat(client: httpx.Client, simulator: Simulator, stem: str = STEMS[0], place: str = "/api/v1") -> httpx.Response:
    url = "data:application/pdf;base64," + base64.b64encode(pdf(stem)).decode()
    headers = {"Authorization": f"Bearer {KEY}"}
    return client.post(f"{simulator.url}/openrouter{place}/chat/completions", headers=headers, json=chat_body(url))


@pytest.fixture
def talking(corpus: Path) -> Iterator[Start]:
    """Starts simulators with dials for chat models, and ends them."""
    running = []

    def begin(**dials: Any) -> Simulator:
        given = {"answers": "answers", "documents": "docs", "vendors": {"openrouter": dials}}
        running.append(Simulator(Profile.from_dict(given, str(corpus))))
        return running[-1]

    yield begin
    for simulator in running:
        simulator.close()


@pytest.mark.parametrize("place", ["", "/v1", "/api/v1"])
def test_a_chat_model_in_one_call(talking: Start, client: httpx.Client, place: str) -> None:
    simulator = talking(price=0.004)
    body = chat(client, simulator, place=place).json()
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "stop" and json.loads(choice["message"]["content"]) == {"name": STEMS[0]}
    assert body["usage"]["cost"] == simulator.stats()["openrouter"]["billed"] == 0.004
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]


def test_faults_of_chat_models(talking: Start, client: httpx.Client) -> None:
    simulator = talking(price=0.5)
    for dial in ("talk", "cut_short", "error_inside"):
        simulator.reset()
        simulator.dials("openrouter", **{"talk": 0, "cut_short": 0, "error_inside": 0, dial: 1})
        answer = chat(client, simulator)
        assert answer.status_code == 200 and simulator.stats()["openrouter"]["outcomes"] == {dial: 1}
        if dial == "error_inside":
            assert answer.json()["choices"] is None and answer.json()["error"]["code"] == 502
            assert simulator.stats()["openrouter"]["billed"] == 0
        else:
            assert answer.json()["choices"][0]["finish_reason"] == ("length" if dial == "cut_short" else "stop")
            with pytest.raises(ValueError):
                json.loads(answer.json()["choices"][0]["message"]["content"])
    simulator.dials("openrouter", error_inside=0, first_402=1, retry_after="2", credit=0.5)
    simulator.reset()
    answers = [chat(client, simulator) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [402, 200, 402]
    sources = [answers[n].json()["error"]["metadata"]["limit_source"] for n in (0, 2)]
    assert sources == ["openrouter_in_flight_budget", "openrouter_credits"]
    assert answers[0].headers["retry-after"] == "2" and "retry-after" not in answers[2].headers


def test_dials_of_chat_models_are_no_dials_of_others() -> None:
    with pytest.raises(RequestError, match=r"datalab\.talk: a dial of anthropic, google, openai, openrouter alone"):
        Profile.from_dict({"answers": "x", "vendors": {"datalab": {"talk": 0.5}}})


@pytest.mark.parametrize("url", ["", "https://x/a.pdf", "data:text/plain;base64,eA==", "data:application/pdf;base64,?"])
def test_chat_requests_without_a_document_are_refused(talking: Start, client: httpx.Client, url: str) -> None:
    simulator = talking()
    for body in (chat_body(url), chat_body(url, model=None), {"model": "m", "messages": 7}, []):
        assert client.post(f"{simulator.url}/openrouter/chat/completions", json=body).status_code == 400
    assert simulator.stats()["openrouter"]["unread"] == 4


def test_answers_from_files_go_by_submission_and_may_have_a_status(
    talking: Start, client: httpx.Client, tmp_path: Path
) -> None:
    (tmp_path / f"{STEMS[0]}.1.json").write_bytes(b"<first>")
    (tmp_path / f"{STEMS[0]}.1.head").write_text("429\nretry-after: 3\nx-one: 1")
    (tmp_path / f"{STEMS[0]}.3.json").write_bytes(b"<third>")
    (tmp_path / f"{STEMS[0]}.json").write_bytes(b"<other>")
    simulator = talking(bodies=str(tmp_path), price=1)
    first, second, third = (chat(client, simulator) for _ in range(3))
    assert (first.status_code, first.content, first.headers["retry-after"]) == (429, b"<first>", "3")
    assert (second.status_code, second.content, third.content) == (200, b"<other>", b"<third>")
    stats = simulator.stats()["openrouter"]
    assert stats["outcomes"] == {"scripted": 1, "200": 2} and stats["billed"] == 2 and stats["in_flight"] == 0
