"""`--timings`: where the time of a command goes."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from oeb_ray.cli.main import main
from oeb_ray.clock import phase, process_age, ticking
from tests.helpers import SmallCorpus, overrides


def test_the_phases_of_a_job_add_up_to_the_whole(small: SmallCorpus, tmp_path: Path, capsys) -> None:
    began, age = time.monotonic(), process_age()
    assert main(["benchmark", *overrides(small, tmp_path / "out", "limit=8"), "--timings"]) == 0
    took = time.monotonic() - began
    said = capsys.readouterr().err.splitlines()[-2:]
    spent = {name: float(seconds) for name, seconds in re.findall(r"  ([a-z ]+?) ([\d.]+) s", said[0])}
    assert list(spent) == ["starting", "predicting", "scoring", "storage", "summarising", "the rest"]
    (together,) = re.findall(r"together ([\d.]+) s", said[1])
    assert abs(sum(spent.values()) - float(together)) < 0.05
    assert age <= float(together) <= age + took + 0.05, "from the start of the process"
    assert main(["benchmark", *overrides(small, tmp_path / "out", "limit=8")]) == 0
    assert "timings" not in capsys.readouterr().err


def test_phases_that_pass_at_once_are_told_beside_their_first() -> None:
    with ticking() as clock:
        for name in ("scoring and summarising", "summarising", "predicting and scoring", "scoring"):
            with phase(name):
                pass
    told = ["starting", "predicting and scoring", "scoring", "scoring and summarising", "summarising"]
    assert list(clock.seconds()) == told


def test_a_second_counts_for_the_innermost_phase_of_its_own_thread() -> None:
    def elsewhere() -> None:
        with phase("storage"):
            time.sleep(0.05)

    with ticking() as clock, phase("scoring"):
        time.sleep(0.02)
        with phase("storage"):
            time.sleep(0.01)
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        spent = clock.seconds()
    assert spent["scoring"] >= 0.07 and 0.01 <= spent["storage"] < 0.05
    with phase("storage"):  # no clock, nothing to count
        pass
