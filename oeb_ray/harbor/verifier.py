"""The verifier of a task: output.json in; reward.txt, metrics.json and feedback.json out.

It stands alone on the standard library and the scorer, since a task's image carries nothing else. The output is
hostile: its size and depth are bounded, and it is scored in a process of its own with a bound on time and memory. An
output that is missing, no JSON or no object is a reward of 0. A reference that cannot be read, a scorer that fails or
takes too long, and a document without a single cell are faults of the verifier: then no reward is written at all.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..scoring.value_f1 import OutputNotObject, Ungradable, score
from ..untrusted import read_untrusted

LARGEST_OUTPUT = 64 * 2**20
"""Bytes of an output that are read; a longer one is malformed."""
DEEPEST = 200
"""Levels of lists and objects within each other."""
SECONDS = 1700.0
"""For scoring; below what Harbor gives the verifier, so that the fault is named."""
MEMORY = 6 * 2**30
REWARD, METRICS, FEEDBACK = "reward.txt", "metrics.json", "feedback.json"
STALE = (REWARD, "reward.json", METRICS, FEEDBACK)


class Fault(Exception):
    """The verifier cannot judge; no reward may be written."""


class Refused(Exception):
    """The output earns 0. ``kind``: missing, malformed or not_object."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class Judged:
    """What the three files say. ``reward``: in 0 to 1; the others as they are written."""

    reward: float
    metrics: dict[str, Any]
    feedback: dict[str, Any]


def parsed(data: bytes) -> dict[str, Any]:
    """The object that an output's text is, read as Python's json reads it.

    Raises:
        Refused: it is no JSON in UTF-8 within the bounds, or no object.
    """
    try:
        value = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise Refused("malformed", "the output is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Refused("malformed", f"the output is no UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Refused("malformed", f"the output is no JSON: {error.msg} in line {error.lineno}") from None
    except ValueError:
        raise Refused("malformed", "the output holds a number with too many digits") from None
    if _is_deep(value):
        raise Refused("malformed", f"the output is nested more than {DEEPEST} levels deep")
    if not isinstance(value, dict):
        raise Refused("not_object", "the output is no JSON object")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        holders = [holder for holder in level if isinstance(holder, dict | list)]
        if not holders:
            return False
        level = [member for one in holders for member in (one.values() if isinstance(one, dict) else one)]
    return True


# --- judging ------------------------------------------------------------------------------------------------------


def judged(reference: Mapping[str, Any], path: str) -> Judged:
    """What an output file earns.

    Args:
        reference: schema, reference, field_rules and today, as reference.json of a task holds them.

    Raises:
        Fault: see the module's text.
    """
    try:
        return judged_text(reference, read_untrusted(path, LARGEST_OUTPUT))
    except FileNotFoundError:
        return judged_text(reference, None)
    except ValueError as error:
        return refused_by(reference, Refused("malformed", f"the output {error}"))


def judged_text(reference: Mapping[str, Any], data: bytes | None) -> Judged:
    """As `judged`, of an output's text; None where there is none."""
    try:
        if data is None:
            raise Refused("missing", "there is no output file")
        return scored(reference, parsed(data))
    except Refused as refused:
        return refused_by(reference, refused)


def refused_by(reference: Mapping[str, Any], refused: Refused) -> Judged:
    """A zero; a fault of the task shows whatever the output is. Raises Fault."""
    try:
        scored(reference, reference.get("reference"))
    except Refused as error:
        raise Fault(f"the reference itself is refused: {error.message}") from error
    return _zero(refused)


def scored(reference: Mapping[str, Any], output: Any) -> Judged:
    """What a parsed output earns. Raises Refused or Fault."""
    try:
        today = dt.date.fromisoformat(reference["today"])
        found = score(
            output,
            reference["reference"],
            reference["schema"],
            today=today,
            field_rules=reference["field_rules"],
            feedback=True,
        )
    except OutputNotObject as error:
        raise Refused("not_object", str(error)) from error
    except Ungradable as error:
        raise Fault(str(error)) from error
    except MemoryError as error:
        raise Fault("scoring takes more memory than there is") from error
    except Exception as error:  # of the scorer or of a task of another shape: never the output's zero
        raise Fault(f"scoring failed: {type(error).__name__}: {error}") from error
    cells = [
        {
            "reference_path": cell.reference_path,
            "output_path": cell.output_path,
            "outcome": cell.outcome,
            "f1_credit": cell.f1_credit,
        }
        for cell in found["feedback"]
    ]
    feedback = {
        "status": "ok",
        "error": None,
        "reward": found["f1"],
        "value_incomplete": found["value_incomplete"],
        "counts": {
            "expected": found["expected_cells"],
            "predicted": found["predicted_cells"],
            "matched": found["matched_cells"],
        },
        "cells": cells,
    }
    metrics = _metrics(found["precision"], found["recall"], found["f1"], found["perfect"])
    return Judged(found["f1"], metrics, feedback)


def _zero(refused: Refused) -> Judged:
    feedback = {
        "status": "error",
        "error": {"kind": refused.kind, "message": refused.message},
        "reward": 0.0,
        "value_incomplete": False,
        "counts": {"expected": 0, "predicted": 0, "matched": 0},
        "cells": [],
    }
    return Judged(0.0, _metrics(0.0, 0.0, 0.0, False), feedback)


def _metrics(precision: float, recall: float, f1: float, perfect: bool) -> dict[str, Any]:
    return {
        "extract_unified_value_precision": precision,
        "extract_unified_value_recall": recall,
        "extract_unified_value_f1": f1,
        "perfect_document": int(perfect),
    }


# --- files --------------------------------------------------------------------------------------------------------


def verify(reference: str, output: str, logs: str, *, seconds: float = SECONDS) -> float:
    """Removes what is left from before, judges an output, writes the three files, and returns the reward.

    Args:
        reference: path of a task's reference.json. output: path of the output. logs: folder of the files.

    Raises:
        Fault: no file was written.
    """
    folder = Path(logs)
    folder.mkdir(parents=True, exist_ok=True)
    for name in STALE:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise Fault(f"{folder / name} of an earlier verification cannot be removed: {error.strerror}") from error
    made = _in_a_process(reference, output, seconds)
    _write(folder / METRICS, made.metrics)
    _write(folder / FEEDBACK, made.feedback)
    _write(folder / REWARD, made.reward)
    return made.reward


def _write(path: Path, value: Any) -> None:
    text = f"{Decimal(repr(value)):f}" if isinstance(value, float) else json.dumps(value, indent=1)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text + "\n")
    beside.replace(path)


def _in_a_process(reference: str, output: str, seconds: float) -> Judged:
    command = [sys.executable, "-P", "-m", _MODULE, "--judge", "--reference", reference, "--output", output]
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Fault(f"scoring took more than {seconds:g} s") from None
    if ended.returncode != 0:
        raise Fault(f"scoring ended with {ended.returncode}")
    return Judged(**json.loads(ended.stdout))


_MODULE = __spec__.name if __spec__ is not None else __name__


def _judge(reference: str, output: str) -> int:
    """What the process of its own does."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        given = json.loads(Path(reference).read_bytes().decode("utf-8"))
        if not isinstance(given, dict):
            raise Fault("the task's reference is no object")
        made = judged(given, output)
    except Fault as fault:
        print(f"no reward: {fault}", file=sys.stderr)
        return 1
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        print(f"no reward: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    json.dump({"reward": made.reward, "metrics": made.metrics, "feedback": made.feedback}, sys.stdout)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command in a task's test.sh. 0: a reward was written; 1: none, and the reason is on standard error."""
    parser = argparse.ArgumentParser(description="Judge the output of a task.")
    parser.add_argument("--reference", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--logs", default=".")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.judge:
        return _judge(given.reference, given.output)
    try:
        reward = verify(given.reference, given.output, given.logs, seconds=given.seconds)
    except Fault as fault:
        print(f"no reward: {fault}", file=sys.stderr)
        return 1
    print(f"reward {reward}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
