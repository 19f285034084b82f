"""A Harbor job folder as it is found: its trials, what each left, and the reward that its files state.

In: a folder of other people's. Out: Trials; whatever is odd about one is said of that trial and stops no other. A
reward that is no number from 0 to 1 is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .. import storage
from ..errors import RequestError
from ..jsontext import read_json
from ..untrusted import read_untrusted
from .verifier import LARGEST_OUTPUT

OUTPUT = "artifacts/app/output.json"
MOST_RESULT, MOST_REWARD = 16 * 2**20, 2**20
MISSING = "there is no reward file: the verifier failed"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Trial:
    """One trial. ``task``: its name without the organisation; ``output``: None if it left none; ``reward``: None if
    there is none that counts as a number, and then ``odd`` says why; ``agent``, ``model``; ``error``: the exception
    that ended it, as ``Type: message``; ``usd``, ``tokens_in``, ``tokens_out`` as stated; ``seconds`` of the agent."""

    name: str
    task: str
    agent: str
    model: str
    output: bytes | None
    reward: float | None
    odd: str
    error: str
    usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    seconds: float
    started: str


def read_job(folder: str) -> list[Trial]:
    """The trials of a job, by name.

    Raises:
        RequestError: the folder holds none.
    """
    folder = storage.absolute(folder)
    names = storage.folders(folder)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda name: _trial(folder, name), names))
    trials = [trial for trial in found if trial is not None]
    if not trials:
        raise RequestError(f"{folder} holds no trial; give the folder of one Harbor job, with config.json in it")
    return trials


def _trial(folder: str, name: str) -> Trial | None:
    """The trial of a folder; None if it is no trial's."""
    place = storage.join(folder, name)
    files = storage.listed(place)
    if not {"result.json", "config.json", "trial.log"} & files.keys():
        return None
    told = _object(place, "result.json") or {}
    agent, result = _at(told, "agent_info"), _at(told, "agent_result")
    model = _at(agent, "model_info")
    reward, odd = stated_reward(place)
    task = _text(_at(told, "task_name")).rsplit("/", 1)[-1] or name.rsplit("__", 1)[0]
    output = _read(place, OUTPUT, LARGEST_OUTPUT)
    exception = _at(told, "exception_info")
    kind = _text(_at(exception, "exception_type"))
    return Trial(
        name,
        task,
        _text(_at(agent, "name")) or "unknown",
        "/".join(filter(None, (_text(_at(model, "provider")), _text(_at(model, "name"))))),
        output if isinstance(output, bytes) else None,
        reward,
        odd if told else "; ".join(filter(None, ("result.json cannot be read", odd))),
        f"{kind}: {_text(_at(exception, 'exception_message'))}" if kind else "",
        _amount(_at(result, "cost_usd")),
        _whole(_at(result, "n_input_tokens")),
        _whole(_at(result, "n_output_tokens")),
        _seconds(_at(told, "agent_execution")),
        _text(_at(told, "started_at")),
    )


def stated_reward(place: str) -> tuple[float | None, str]:
    """The reward that a trial's files state, as Harbor looks for it, and what is odd about it."""
    data = _read(place, "verifier/reward.json", MOST_REWARD)
    if data is not None:
        if isinstance(data, str):
            return None, data
        try:
            value = read_json(data)
        except ValueError as error:
            return None, f"reward.json is no JSON: {error}"[:200]
        odd = ""
        if isinstance(value, dict):
            odd = f"reward.json has {len(value)} keys" if len(value) > 1 else ""
            value = value.get("reward", next(iter(value.values())) if len(value) == 1 else None)
        if type(value) not in (int, float):
            return None, f"reward.json holds no number as reward: {str(value)[:40]}"
        return _counted(value, odd)
    data = _read(place, "verifier/reward.txt", MOST_REWARD)
    if data is None or isinstance(data, str):
        return None, data or MISSING
    text = data.decode("utf-8", "backslashreplace").strip()
    if not text:
        return None, "reward.txt is empty"
    if not _NUMBER.fullmatch(text):
        return None, f"reward.txt holds no number: {text[:40]!r}"
    return _counted(float(text), "")


def _counted(value: float, odd: str) -> tuple[float | None, str]:
    if not math.isfinite(value):
        return None, f"the reward {value} is not finite"
    if not 0 <= value <= 1:
        return None, f"the reward {value} is outside 0 to 1"
    return float(value), odd


def _read(place: str, name: str, most: int) -> bytes | str | None:
    """A file of a trial: its bytes, why they are not read, or None if there is none."""
    address = storage.join(place, name)
    try:
        if storage.protocol_of(address) == "file":
            return read_untrusted(address, most)
        if storage.stat(address).size > most:
            return f"{name} is larger than {most} bytes"
        return storage.read(address)
    except FileNotFoundError:
        return None
    except ValueError as error:
        return f"{name} {error}"


def _object(place: str, name: str) -> dict[str, Any] | None:
    data = _read(place, name, MOST_RESULT)
    try:
        found = read_json(data) if isinstance(data, bytes) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _amount(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**62 else None


def _seconds(phase: Any) -> float:
    """How long a phase took, by its two times; 0 where that is not told."""
    try:
        began, ended = (datetime.fromisoformat(_at(phase, key)) for key in ("started_at", "finished_at"))
        return max(0.0, (ended - began).total_seconds())
    except (TypeError, ValueError):
        return 0.0
