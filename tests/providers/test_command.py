"""provider command: a command line in a closed room; what it may do, what it cannot, and what is taken from it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import DocumentError, RequestError, VendorError, VendorTimeout
from oeb_ray.plan import expand
from oeb_ray.providers import command as commands
from oeb_ray.providers import errand, sandbox
from oeb_ray.providers.command import Command, CommandOptions, CommandSettings
from oeb_ray.providers.contract import Document, Extraction
from oeb_ray.providers.registry import paid
from oeb_ray.providers.sandbox import Limits

FAULT = sandbox.bubblewrap_fault()
needs_rooms = pytest.mark.skipif(bool(FAULT), reason=FAULT)
SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}}
DOCUMENT = Document("doc 1", "Total 5.pdf", "application/pdf", b"%PDF-1.4 total 5")


class Paying:
    """A Call that notes claims and bills."""

    def __init__(self, seconds: float) -> None:
        self.claims, self.bills, self.seconds = 0, [], seconds

    def remaining(self) -> float:
        return self.seconds

    @asynccontextmanager
    async def paid(self, reason: str) -> AsyncIterator[None]:
        self.claims += 1
        yield

    def billed(self, **figures: Any) -> None:
        self.bills.append(figures)

    async def work(self, function: Any, given: Any) -> Any:
        return await function(given)


def run(
    command: str, *, seconds: float = 20.0, call: Any = None, keys: str = "", setup: str = "", **options: Any
) -> Extraction:
    settings = CommandSettings(command=command, keys=keys, model="m-1", setup=setup)
    provider = commands.with_keys({"keys": keys})
    call = call or Paying(seconds)
    return asyncio.run(provider.extract(DOCUMENT, SCHEMA, settings, CommandOptions(**options), call))


def processes_with(mark: str) -> list[str]:
    """Command lines of this machine that hold a text."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append(Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return [line for line in found if mark in line]


@needs_rooms
def test_it_finds_document_schema_and_instruction_and_its_output_is_taken_byte_for_byte() -> None:
    call = Paying(20)
    made = run(
        """pwd; ls; grep -q total schema.json && grep -q 'JSON Schema' instruction.md && grep -q '^%PDF' document.pdf &&
        printf '{"total":  5}\\n\\n' > output.json; echo "$OEB_MODEL $OEB_DOCUMENT" """,
        call=call,
    )
    assert made.prediction == b'{"total":  5}\n\n'
    said = ["/app", "document.pdf", "instruction.md", "schema.json", "m-1 document.pdf"]
    assert made.raw == {"exit_code": 0, "stopped": None, "said": "\n".join(said) + "\n"}
    assert call.claims == 1 and call.bills == []


@needs_rooms
def test_home_network_gold_and_environment_are_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = tmp_path / "gold.json"
    gold.write_text('{"total": 5}')
    monkeypatch.setenv("SECRET_OF_THE_HOST", "canary-secret-4711")
    made = run(
        f"cat {gold} {Path.home()}/.bashrc /etc/shadow && echo readable;"
        f" ls {Path(__file__).parent} {Path.home()} /root /home && echo seen;"
        " for place in / /usr /etc /dev /proc/sys/kernel; do touch $place/oeb-x && echo wrote $place; done;"
        " env | grep SECRET; tail -n +3 /proc/net/dev | grep -v lo: ;"
        " ls /proc | grep -c '^[0-9]*$'; id -u; echo '{}' > output.json"
    )
    said = made.raw["said"]
    lines = [line for line in said.splitlines() if not line.startswith(("cat: ", "ls: ", "touch: "))]
    assert [line for line in lines if line not in ("/home:", "agent")] == [lines[-2], "1000"], said
    assert int(lines[-2]) < 10, "no other process is seen"
    assert gold.read_text() == '{"total": 5}'


@needs_rooms
def test_what_is_still_running_at_the_deadline_is_killed_and_what_it_left_counts() -> None:
    started = time.monotonic()
    made = run("echo '{\"total\": 4}' > output.json; setsid sleep 3171.5 & sleep 3171.5", seconds=1.0)
    assert time.monotonic() - started < 10
    assert made.prediction == b'{"total": 4}\n' and made.raw["stopped"] == "not done within 1 s"
    assert processes_with("3171.5") == []
    with pytest.raises(VendorTimeout, match=r"left no output.json: not done within"):
        run("sleep 3171.5", seconds=0.5)
    assert processes_with("3171.5") == []


@needs_rooms
def test_a_fork_bomb_ends_with_its_room() -> None:
    with pytest.raises(DocumentError):
        run("bomb() { bomb 3172.5 | bomb 3172.5 & }; bomb; sleep 3172.5", seconds=1.0)
    assert processes_with("3172.5") == []
    assert run("echo '{}' > output.json").prediction == b"{}\n", "the machine goes on"


@needs_rooms
def test_the_disk_is_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VendorError, match="more than 20000000 bytes on disk") as told:
        run("while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done", disk_gb=0.02)
    assert told.value.body["exit_code"] == -9
    monkeypatch.setattr(errand, "Limits", lambda disk: Limits(disk=disk, entries=100))
    with pytest.raises(VendorError, match="more than 100 files"):
        run("while :; do i=$((i+1)); : > f$i; done")


@needs_rooms
def test_an_output_of_a_gigabyte_a_link_or_a_pipe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VendorError, match=r"output\.json is larger than"):
        run("truncate -s 1G output.json")
    with pytest.raises(VendorError, match=r"output\.json is a link"):
        run("ln -s /etc/hostname output.json")
    with pytest.raises(VendorError, match=r"output\.json is no regular file"):
        run("mkfifo output.json")
    monkeypatch.setattr(sandbox, "SAID", 100)
    assert len(run("head -c 30000000 /dev/zero | tr '\\0' x; echo '[]' > output.json").raw["said"]) == 100


@needs_rooms
def test_a_command_that_fails_says_how() -> None:
    with pytest.raises(VendorError, match=r"left no output.json: it ended with 3") as told:
        run("echo the model is overloaded >&2; exit 3")
    assert told.value.body["said"] == "the model is overloaded\n"
    assert run("echo '{}' > output.json; exit 3").raw["exit_code"] == 3


@needs_rooms
@pytest.mark.parametrize(
    ("usage", "usd", "tokens"),
    [
        ('{"usd": 0.25, "tokens_in": 1000, "tokens_out": 20}', 0.25, (1000, 20)),
        ('{"total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 3}}', 0.5, (7, 3)),
        ('{"usd": NaN, "tokens_in": -4, "tokens_out": true}', None, (None, None)),
        ("not JSON", None, None),
    ],
)
def test_cost_is_what_the_command_states(usage: str, usd: float | None, tokens: Any) -> None:
    call = Paying(20)
    run(f"echo '{{}}' > output.json; echo '{usage}' > usage.json", call=call)
    if tokens is None:
        assert call.bills == []
    else:
        source = "usage.json" if usd is not None else None
        assert call.bills == [{"usd": usd, "source": source, "tokens_in": tokens[0], "tokens_out": tokens[1]}]


@needs_rooms
def test_a_key_reaches_the_command_and_nothing_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", "canary-key-4711")
    made = run('test "$AGENT_KEY" && echo "key $AGENT_KEY" && echo "{}" > output.json', keys="AGENT_KEY, OTHER")
    assert made.raw["said"] == "key <AGENT_KEY>\n"
    with pytest.raises(VendorError, match="holds a key") as told:
        run('echo "{\\"a\\": \\"$AGENT_KEY\\"}" > output.json', keys="AGENT_KEY")
    assert "canary-key" not in f"{told.value} {told.value.body}"


@needs_rooms
def test_the_setup_comes_before_the_command_and_its_files_stay() -> None:
    call = Paying(20)
    program = "~/.local/bin/agent"
    setup = (
        f"mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho {{}} > /app/output.json' > {program} && chmod +x {program}"
    )
    assert run("agent", setup=setup, call=call).prediction == b"{}\n"
    with pytest.raises(VendorError, match="the setup ended with 9"):
        run("agent", setup="exit 9", call=call)
    assert call.claims == 2 and not call.bills, "of the second nothing was spent"


@needs_rooms
def test_folders_that_are_shown_are_read_only_copies(tmp_path: Path) -> None:
    (tmp_path / "doc 1" / "solution" / "more").mkdir(parents=True)
    (tmp_path / "doc 1" / "solution" / "more" / "expected.json").write_text('{"total": 5}')
    show = f"/solution={tmp_path}/{{doc_id}}/solution"
    made = run("cp /solution/more/expected.json output.json; touch /solution/x || echo no", show=show)
    assert made.prediction == b'{"total": 5}' and made.raw["said"].endswith("no\n")
    with pytest.raises(VendorError, match="there is nothing at"):
        run("true", show=f"/solution={tmp_path}/other")


@needs_rooms
def test_nothing_of_a_room_stays_not_even_a_thousand_folders_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **how: made.append(make(**how)) or made[-1])
    deep = "$(printf 'd/%.0s' $(seq 1100))"
    assert run(f"mkdir -p {deep} && chmod 000 {deep} && echo {{}} > output.json").raw["said"] == ""
    (room,) = made
    assert not os.path.lexists(room)


def test_without_a_room_it_runs_only_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "bubblewrap_fault", lambda: "bwrap is not installed")
    with pytest.raises(RequestError, match="bwrap is not installed; isolation=none runs"):
        expand({"command": {"command": "true"}}, 60.0)
    (run_of,), _ = expand({"command": {"command": "true", "isolation": "none"}}, 60.0)
    assert run_of.options["isolation"] == "none" and run_of.lane is not None
    made = run("pwd > output.json", isolation="none")
    assert made.prediction.decode().startswith("/tmp/oeb-room-")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "true", "allow_hosts": "https://api.openai.com"}, "is no host"),
        ({"command": "true", "isolation": "docker"}, "known: bubblewrap, none"),
        ({"command": " "}, "command is empty"),
        ({"command": "true", "show": "solution"}, "is not as in /inside=PATH"),
        ({"command": "true", "keys": "NO_SUCH_KEY_4711"}, "set NO_SUCH_KEY_4711"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_runs(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        expand({"command": entry}, 60.0)


def test_one_agent_is_one_account() -> None:
    entries = [{"command": "true", "agent": "codex"}, {"command": "false", "agent": "codex", "model": "m"}]
    runs, _ = expand({"command": {"options": entries, "isolation": "none"}}, 60.0)
    assert len({one.lane.account for one in runs if one.lane}) == 1
    assert isinstance(paid("command", {"keys": "A,B"}), Command)
    assert json.dumps([one.settings for one in runs])
