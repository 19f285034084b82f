"""Pinned data: chosen, fetched over HTTP with every fault a download meets, and held against their digests."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import storage
from oeb_ray.cli.main import main
from oeb_ray.corpus.pinned_fetch import fetch_pinned
from oeb_ray.corpus.pins import load_pins, read_pinned, read_pins
from oeb_ray.errors import RequestError

from .extractkit_data import CORD, DATA, DOCILE, PINS
from .file_server import FileServer, file_server

TOKEN = "tok-7f3a/secret"
FILE = "/datasets/synthetic/cord-style/resolve/local/data/test-00000-of-00001.parquet"
ARCHIVE = "/tok-7f3a%2Fsecret/docile-style.zip"
TARGET = "data/test-00000-of-00001.parquet"
Place = tuple[FileServer, Path]


def zipped(folder: Path, **more: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for path in sorted(folder.rglob("*.*")):
            packed.write(path, str(path.relative_to(folder)))
        for name, data in more.items():
            packed.writestr(name, data)
    return sink.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server with both halves, and a folder to fetch to; no token."""
    monkeypatch.delenv("DOCILE_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with file_server() as server:
        server.files = {FILE: CORD.read_bytes(), ARCHIVE: zipped(DOCILE)}
        yield server, tmp_path / "data"


def fetch(place: Place, pins: Path = PINS) -> int:
    server, data = place
    hosts = ["--cord-host", server.url, "--docile-host", server.url]
    return main(["corpus", "fetch", str(pins), "--data", str(data), *hosts])


def left(place: Place) -> list[str]:
    return sorted(str(path.relative_to(place[1])) for path in place[1].rglob("*") if path.is_file())


def test_both_halves_are_fetched_and_then_nothing_more(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCILE_TOKEN", TOKEN)
    assert fetch(place) == 0
    assert sorted(place[0].asked) == sorted([(FILE, 0), (ARCHIVE, 0)])
    assert left(place)[0] == TARGET and len(left(place)) == 22  # the zip file is gone
    assert main(["corpus", "verify", str(PINS), "--data", str(place[1])]) == 0
    assert fetch(place) == 0 and len(place[0].asked) == 2
    out, err = capsys.readouterr()
    assert "12 documents are the pinned ones; manifest 311dbcbf3cab" in out
    assert "receipts: present\ninvoices: present" in out and TOKEN not in out + err


def test_without_a_token_the_invoices_are_left_out_with_a_notice(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCILE_TOKEN", "  ")
    assert fetch(place) == 0 and left(place) == [TARGET]
    assert main(["corpus", "verify", str(PINS), "--data", str(place[1])]) == 0
    out, err = capsys.readouterr()
    assert "invoices: skipped" in out and "DOCILE_TOKEN is not set" in err and "docile.rossum.ai" in err
    assert "6 documents are the pinned ones" in out and "6 pinned invoices are left out" in err


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [("404", 2, "answered 404"), ("500", 2, "answered 500"), ("other", 2, "so nothing of it is kept: its sha256 is"),
     ("unsized", 2, "so nothing of it is kept: its sha256 is"),
     ("cut", 2, "203,239 bytes are here, the same command goes on there")],
)  # fmt: skip
def test_a_download_that_fails_leaves_nothing_under_its_name(
    place: Place, capsys: pytest.CaptureFixture[str], fault: str, code: int, said: str
) -> None:
    place[0].faults[FILE] = fault
    assert fetch(place) == code
    assert said in capsys.readouterr().err
    assert left(place) == ([f"{TARGET}.part"] if fault == "cut" else [])
    place[0].faults.clear()
    assert fetch(place) == 0 and left(place) == [TARGET]
    assert place[0].asked[-1][1] == (203239 if fault == "cut" else 0)


@pytest.mark.parametrize(("ranges", "first", "sent"), [(True, [1000], -1000), (False, [1000], 0)])
def test_what_is_here_is_continued_where_the_server_can(
    place: Place, ranges: bool, first: list[int], sent: int
) -> None:
    part = place[1] / f"{TARGET}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CORD.read_bytes()[:1000])
    place[0].faults[FILE] = "" if ranges else "whole"
    assert fetch(place) == 0 and [start for _, start in place[0].asked] == first
    assert place[0].sent == CORD.stat().st_size + sent


@pytest.mark.parametrize("part", [b"x" * 1000, b"x" * 1_000_000])
def test_a_part_of_another_file_is_dropped_and_fetched_once_more(place: Place, part: bytes) -> None:
    (place[1] / "data").mkdir(parents=True)
    (place[1] / f"{TARGET}.part").write_bytes(part)
    assert fetch(place) == 0 and left(place) == [TARGET]
    assert [start for _, start in place[0].asked] == [len(part), 0]


def test_a_part_that_is_all_of_it_is_not_asked_for_again(place: Place) -> None:
    (place[1] / "data").mkdir(parents=True)
    (place[1] / f"{TARGET}.part").write_bytes(CORD.read_bytes())
    assert fetch(place) == 0 and left(place) == [TARGET] and place[0].asked == []


def test_a_file_that_another_process_fetches_is_left_to_it(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place[1] / "data").mkdir(parents=True)
    with (place[1] / f"{TARGET}.part").open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert fetch(place) == 2
    assert "is being fetched by another process" in capsys.readouterr().err and place[0].asked == []


def test_a_file_of_other_content_is_replaced(place: Place) -> None:
    (place[1] / "data").mkdir(parents=True)
    (place[1] / TARGET).write_bytes(b"other")
    assert fetch(place) == 0 and (place[1] / TARGET).read_bytes() == CORD.read_bytes()


@pytest.mark.parametrize("where", ["manifest", "environment"])
def test_the_manifest_or_the_environment_may_name_the_host(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    value, pins = json.loads(PINS.read_text()), tmp_path / "pins.json"
    if where == "manifest":
        value["cord"]["host"] = place[0].url
    else:
        monkeypatch.setenv("HF_ENDPOINT", f"{place[0].url}/")
    pins.write_text(json.dumps(value))
    assert main(["corpus", "fetch", str(pins), "--data", str(place[1])]) == 0 and left(place) == [TARGET]
    assert main(["corpus", "pin", str(pins), "--cord", str(CORD), "--count", "6"]) == 0
    assert json.loads(pins.read_text()) == value
    value["cord"]["host"] = "file:///etc"
    pins.write_text(json.dumps(value))
    assert main(["corpus", "fetch", str(pins), "--data", str(place[1])]) == 2
    assert "cord.host is 'file:///etc'" in capsys.readouterr().err


@pytest.mark.parametrize(("fault", "said"), [("403", "answered 403"), ("cut", "could not be fetched")])
def test_the_token_stands_in_no_message(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture, fault: str, said: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DOCILE_TOKEN", TOKEN)
    place[0].faults[ARCHIVE] = fault
    caplog.set_level(0)
    assert fetch(place) == 2 and (place[1] / TARGET).exists()
    out, err = capsys.readouterr()
    assert said in err and "<token>/docile-style.zip" in err
    assert not [text for text in (TOKEN, "7f3a") if text in out + err + caplog.text]


def test_both_failures_are_told_together(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCILE_TOKEN", TOKEN)
    place[0].faults.update({FILE: "404", ARCHIVE: "403"})
    assert fetch(place) == 2
    said = capsys.readouterr().err
    assert "2 problems" in said and "answered 404" in said and "answered 403" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"no zip", "no zip file"), (zipped(DOCILE, **{"../evil.txt": b"x"}), "leaves the folder"),
     (zipped(DOCILE, **{"/etc/evil": b"x"}), "leaves the folder"), (zipped(DOCILE / "pdfs"), "no folder annotations")],
)  # fmt: skip
def test_an_archive_that_is_none_or_not_safe_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes, said: str
) -> None:
    monkeypatch.setenv("DOCILE_TOKEN", TOKEN)
    place[0].files[ARCHIVE] = data
    assert fetch(place) == 2 and said in capsys.readouterr().err
    assert left(place) == [TARGET] and not (place[1].parent / "evil.txt").exists()


def test_a_place_that_cannot_be_written_says_so(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place[1].write_text("a file, not a folder")
    assert fetch(place) == 5
    assert f"cannot write {place[1] / TARGET}" in capsys.readouterr().err


def test_ctrl_c_ends_a_download_and_the_next_goes_on(place: Place) -> None:
    def interrupt(name: str) -> Any:
        def told(here: int, whole: int | None) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # until the main thread has noticed

        return told

    with pytest.raises(KeyboardInterrupt):
        fetch_pinned(load_pins(str(PINS)), place[1], {}, cord_host=place[0].url, told=interrupt)
    (part,) = left(place)
    first = (place[1] / part).stat().st_size
    assert part.endswith(".part") and 0 < first < CORD.stat().st_size
    assert fetch(place) == 0 and place[0].asked[-1] == (FILE, first)


def test_nobody_there_is_one_message(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place[0].url = "http://127.0.0.1:1"
    assert fetch(place) == 2 and "could not be fetched" in capsys.readouterr().err and left(place) == []


def test_the_same_data_are_pinned_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pins = tmp_path / "pins.json"
    old = json.loads(PINS.read_text())
    for half in ("cord", "docile"):
        old[half]["docs"] = []
    pins.write_text(json.dumps(old))
    sources = ["--cord", str(CORD), "--docile", str(DOCILE)]
    assert main(["corpus", "pin", str(pins), *sources, "--count", "6"]) == 0
    assert pins.read_bytes() == PINS.read_bytes()
    assert "cord-test-8 is rejected: total.total_price" in capsys.readouterr().err
    assert main(["corpus", "pin", str(pins), "--count", "6"]) == 0 and pins.read_bytes() == PINS.read_bytes()
    new = f"memory://{tmp_path.name}/pins.json"
    assert main(["corpus", "pin", new, *sources, "--count", "6"]) == 0
    assert json.loads(storage.read(new))["cord"]["dataset"] == "naver-clova-ix/cord-v2"
    assert main(["corpus", "fetch", new, "--data", "s3://bucket/x"]) == 2
    assert main(["corpus", "pin", str(pins), *sources, "--count", "9"]) == 2
    assert "9 receipts are to be pinned, and 8 can be" in capsys.readouterr().err
    assert pins.read_bytes() == PINS.read_bytes()


def test_the_published_manifest_is_read() -> None:
    pins = load_pins(str(DATA / "published" / "extractkit_manifest.json"))
    assert (len(pins.cord.docs), len(pins.docile.docs)) == (25, 0)
    assert pins.checksum == "3fcd95f11b94a49078731a6285f0024a8fa2a583ca49102b88efdd0a4c9d59d6"


def test_a_faulty_manifest_is_refused_with_all_that_is_wrong() -> None:
    value: dict[str, Any] = json.loads(PINS.read_text())
    value["cord"]["file"] = "../../etc/passwd"
    value["cord"]["docs"][0]["imageSha256"] = "abc"
    value["docile"]["docs"] = [{"docId": "../x", "pdfSha256": "0" * 64, "annotationSha256": "0" * 64}, 7]
    with pytest.raises(RequestError, match="4 problems") as raised:
        read_pins(json.dumps(value).encode(), "pins.json")
    for said in ("cord.file", "cord.docs[0].imageSha256 is 'abc'", "docile.docs[0].docId", "docile.docs[1]"):
        assert said in str(raised.value)
    for data, said in ((b"{", "no JSON"), (b'{"version": 2}', "version 2"), (b"[]", "version None")):
        with pytest.raises(RequestError, match=said):
            read_pins(data, "pins.json")


def test_every_document_that_differs_is_named_with_both_digests(tmp_path: Path) -> None:
    value = json.loads(PINS.read_text())
    value["cord"]["docs"][1] |= {"imageSha256": "0" * 64, "imageId": 77}
    value["docile"]["docs"][0]["annotationSha256"] = "1" * 64
    data = tmp_path / "data"
    (data / "data").mkdir(parents=True)
    (data / TARGET).write_bytes(CORD.read_bytes())
    (data / "docile").symlink_to(DOCILE)
    with pytest.raises(RequestError, match="3 problems") as raised:
        read_pinned(read_pins(json.dumps(value).encode(), "pins.json"), str(data))
    for said in ("cord-test-1: the image's sha256 is 1a790117af46", f"pinned is {'0' * 64}", "id is 1, pinned is 77"):
        assert said in str(raised.value)
    value["cord"]["docs"][1]["rowIndex"] = 400
    with pytest.raises(RequestError, match="has 10 rows in the split test, and none of the number 400"):
        read_pinned(read_pins(json.dumps(value).encode(), "pins.json"), str(data))
    with pytest.raises(RequestError, match="pins no document"):
        read_pinned(
            read_pins(
                json.dumps(
                    value | {"cord": value["cord"] | {"docs": []}, "docile": value["docile"] | {"docs": []}}
                ).encode(),
                "",
            ),
            "",
        )


def test_a_corpus_is_made_of_the_pinned_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    (data / "data").mkdir(parents=True)
    (data / TARGET).write_bytes(CORD.read_bytes())
    (data / "docile").symlink_to(DOCILE)
    out = tmp_path / "corpus"
    assert main(["corpus", "make", "--pins", str(PINS), "--data", str(data), "--out", str(out)]) == 0
    assert f"12 documents, 0 rejected\n{out}/manifest.parquet" in capsys.readouterr().out
    assert main(["corpus", "make", "--out", str(out)]) == 2
    assert main(["corpus", "make", "--cord", str(CORD), "--out", str(out)]) == 0
    assert "cord-test-9 is rejected: 2 items" in capsys.readouterr().err
