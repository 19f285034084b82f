"""One contract over folders, memory and S3; and names that are patterns elsewhere."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request

from oeb_ray import backends, storage
from oeb_ray.errors import RequestError, StorageError
from tests.conftest import ACCESS_KEY, SECRET_KEY
from tests.proxies import S3Proxy, endpoint

IDS = ["Form [A] 1040", "a*b", "q?.v2", "x::y", "a#b", "100%", "%41", "c{1,2}", "~user", "$HOME", "a&b", "semi;colon"]
IDS += [
    "back\\slash",
    " lead",
    "trail ",
    "dot.",
    "..hidden",
    "con",
    "a\u00a0b",
    "\U0001f4c4 scan",
    "new\nline",
    "ä",
    "A",
]
REFUSED = ["up/../down", "..", ".", "", "nul\0", "a/b", "x" * 300, "漢" * 100]


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.s3), "moto"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder, memory, and two S3 servers that have nothing in common."""
    if request.param == "folder":
        yield str(tmp_path / "place")
    elif request.param == "memory":
        yield f"memory://{tmp_path.name}"
    elif request.param == "s3":
        yield f"{request.getfixturevalue('s3')}/{tmp_path.name}"
    else:
        keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
        with endpoint(request.getfixturevalue("moto"), **keys):
            yield f"s3://moto/{tmp_path.name}"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a moto server with the bucket ``moto``."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto", method="PUT")).close()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def proxy(s3: str) -> Iterator[S3Proxy]:
    """In front of the S3 server."""
    opened = S3Proxy(os.environ["AWS_ENDPOINT_URL"])
    yield opened
    opened.close()


def test_names_are_those_of_the_objects_right_in_a_folder(place: str) -> None:
    for name in ("x.json", "b c", "deeper/y"):
        storage.put(storage.join(place, name), b"1")
    assert storage.names(place) == {"x.json", "b c"}
    assert storage.names(storage.join(place, "nowhere")) == set()


def test_links_to_nowhere_are_neither_listed_nor_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    for name, target in (("gone", "nowhere"), ("itself", "itself")):
        (tmp_path / name).symlink_to(tmp_path / target)
    assert storage.names(str(tmp_path)) == storage.listed(str(tmp_path)).keys() == {"x"}


def test_a_file_that_another_replaces_at_once_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "x")
    assert storage.put_seen(place, b"ours") == storage.stat(place)
    monkeypatch.setattr(storage, "put", lambda address, data: Path(address).write_bytes(b"theirs"))
    assert storage.put_seen(place, b"ours") is None
    monkeypatch.setattr(storage, "put", lambda address, data: Path(address).unlink())
    assert storage.put_seen(place, b"ours") is None


def test_what_is_put_is_read_listed_and_deleted(place: str) -> None:
    one, other = storage.join(place, "a b", "x.json"), storage.join(place, "y")
    storage.put(one, b"first")
    storage.put(one, b"second, longer")
    storage.put(other, b"")
    assert storage.read(one) == b"second, longer"
    assert {key: stamp.size for key, stamp in storage.listed(place).items()} == {"a b/x.json": 14, "y": 0}
    assert storage.stat(one).size == 14
    storage.delete(one)
    storage.delete(one)
    assert list(storage.listed(place)) == ["y"]
    with pytest.raises(FileNotFoundError):
        storage.read(one)


def test_a_missing_folder_lists_nothing(place: str) -> None:
    assert storage.listed(storage.join(place, "none")) == {}
    assert storage.stat_many([storage.join(place, "none", str(n)) for n in range(10)]) == {}


def test_folders_are_named_without_looking_deeper(place: str) -> None:
    for key in ("run [1]/settings.json", "run [1]/deep/x", "a*b/y", "file"):
        storage.put(storage.join(place, key), b"x")
    assert storage.folders(place) == ["a*b", "run [1]"]
    assert storage.folders(storage.join(place, "run [1]")) == ["deep"]
    assert storage.folders(storage.join(place, "file")) == storage.folders(storage.join(place, "none")) == []


def test_a_create_has_one_winner(place: str) -> None:
    address, won = storage.join(place, "claim"), []
    data = [json.dumps({"token": number}).encode() for number in range(8)]
    threads = [threading.Thread(target=lambda d=d: won.append(storage.create(address, d))) for d in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
    assert storage.read(address) in data
    assert storage.create(address, storage.read(address) + b" ") is False


def test_a_store_that_overwrites_silently_is_found_out(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.require_exclusive(place)
    monkeypatch.setattr(storage, "create", lambda address, data: storage.put(address, data) is None)
    with pytest.raises(RequestError, match="overwrites objects that are created twice"):
        storage.require_exclusive(place)
    assert storage.listed(place) == {}


def test_age_is_by_the_clock_of_the_storage(place: str) -> None:
    storage.put(storage.join(place, "beat"), b"x")
    assert -2 < storage.age(storage.join(place, "beat")) < 30
    with pytest.raises(FileNotFoundError):
        storage.age(storage.join(place, "none"))


def test_another_writers_objects_are_seen_at_once(place: str) -> None:
    """BR-56: no listing of yesterday, no old length."""
    storage.put(storage.join(place, "record"), b"a long answer")
    before = storage.listed(place)
    backend, path = storage.located(storage.join(place, "record"))
    backend.put(path, b"short")
    backend.put(f"{path}.2", b"new")
    assert list(before) == ["record"]
    assert sorted(storage.listed(place)) == ["record", "record.2"]
    assert storage.read(storage.join(place, "record")) == b"short"


@pytest.mark.parametrize("doc_id", IDS)
def test_ids_are_encoded_without_loss(doc_id: str) -> None:
    encoded = storage.encode_id(doc_id)
    assert storage.decode_id(encoded) == doc_id
    assert "/" not in encoded and not encoded.startswith(".") and encoded.isprintable()


def test_no_two_ids_meet(place: str) -> None:
    for doc_id in IDS:
        storage.put(storage.join(place, f"{storage.encode_id(doc_id)}.json"), doc_id.encode())
    found = storage.listed(place)
    assert len(found) == len(IDS)
    for name in found:
        content = storage.read(storage.join(place, name)).decode()
        assert storage.decode_id(name.removesuffix(".json")) == content


@pytest.mark.parametrize("doc_id", REFUSED)
def test_ids_that_are_no_path_component_are_refused(doc_id: str) -> None:
    with pytest.raises(ValueError, match="id"):
        storage.encode_id(doc_id)


def test_a_read_only_target_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot write"):
        storage.put(str(tmp_path / "file" / "x"), b"data")


def test_a_full_disk_leaves_no_half_of_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-57: the old object or none, whatever happens in the middle of a write."""
    target = tmp_path / "small" / "object"
    storage.put(str(target), b"old")
    with pytest.raises(StorageError, match="cannot write"), _limited_file_size(1000):
        storage.put(str(target), b"x" * 5000)
    assert target.read_bytes() == b"old"
    assert [path.name for path in target.parent.iterdir()] == ["object"]


class _limited_file_size:
    """The kernel refuses longer files, as a full disk would: an error in the middle of the write."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __enter__(self) -> None:
        import resource
        import signal

        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.before[1]))

    def __exit__(self, *_: object) -> None:
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        signal.signal(signal.SIGXFSZ, self.handler)


@pytest.mark.s3
def test_an_endpoint_that_does_not_answer_is_a_storage_error(s3: str) -> None:
    with (
        endpoint("http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1"),
        pytest.raises(StorageError, match="cannot read s3://oeb/x"),
    ):
        storage.read("s3://oeb/x")


@pytest.mark.s3
def test_an_answer_that_is_lost_after_the_write_is_no_conflict_with_oneself(s3, proxy, tmp_path) -> None:
    lost: list[str] = []

    def rule(request: Request) -> str:
        if request.method == "PUT" and request.url.path not in lost:
            lost.append(request.url.path)
            return "lost"
        return ""

    proxy.rule = rule
    with endpoint(proxy.url):
        assert storage.create(f"{s3}/{tmp_path.name}/claim", b"ours") is True
        assert storage.create(f"{s3}/{tmp_path.name}/claim", b"another's") is False
    assert proxy.seen["lost"] == 1 and storage.read(f"{s3}/{tmp_path.name}/claim") == b"ours"


@pytest.mark.s3
def test_keys_that_expire_are_read_anew_where_they_stand(s3, proxy, tmp_path, monkeypatch) -> None:
    file = tmp_path / "credentials"
    text = "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
    file.write_text(text.format("old", "old"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    proxy.rule = lambda request: "ExpiredToken" if "Credential=old/" in request.headers["authorization"] else ""
    address = f"{s3}/{tmp_path.name}/object"
    with endpoint(proxy.url):
        with pytest.raises(StorageError, match="Expired"):
            storage.put(address, b"x")
        file.write_text(text.format(ACCESS_KEY, SECRET_KEY))
        time.sleep(backends.RENEWAL_SECONDS)
        storage.put(address, b"x")
        assert storage.read(address) == b"x"
    assert proxy.seen["ExpiredToken"]
