"""How much of an account's limits a job uses: ``python -m tests.bench.pools``.

500 documents against the simulator, per case: documents per second over the whole run, beside the most that the limits
allow, min(calls in flight / latency, requests per minute / 60). Then a storm of 429s, and how soon the rate is back.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from oeb_ray.simulator import Profile, Simulator
from tests.helpers import KEY, SmallCorpus, make_pdf_corpus, start_oeb

DOCUMENTS = 500
STORM_SECONDS = 10.0


def run(corpus: SmallCorpus, simulator: Simulator, out: Path, vendor: str, *more: str) -> Any:
    words = [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", f"provider=[{vendor}]", f"storage.root='{out}'",
        f"providers.{vendor}.address='{simulator.url}/{vendor}'", "cluster=inline", *more,
    ]  # fmt: skip
    return start_oeb("benchmark", *words)


def submitted(simulator: Simulator) -> list[float]:
    """When the accepted submissions arrived, in seconds."""
    return [line["mono"] for line in simulator.log() if line["kind"] == "submit" and line["accepted"]]


def case(corpus: SmallCorpus, simulator: Simulator, out: Path, vendor: str, cap: int, rpm: int, latency: float) -> str:
    simulator.reset()
    simulator.dials(vendor, latency=latency, first_429=0)
    limits = [f"providers.{vendor}.in_flight={cap}", f"providers.{vendor}.rpm={rpm or 'null'}"]
    more = ["providers.datalab.poll_interval=0.1"] if vendor == "datalab" else []
    _, err = (driver := run(corpus, simulator, out, vendor, *limits, *more)).communicate()
    assert driver.returncode == 0, err
    arrivals = submitted(simulator)
    rate = (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])
    best = min(cap / latency, rpm / 60 if rpm else float("inf"))
    limit = f"{cap} in flight, {rpm or 'no'} rpm, {latency:g} s"
    return f"{vendor:8} {limit:32} {rate:6.2f}/s of {best:6.2f}/s = {rate / best:6.1%}"


def storm(corpus: SmallCorpus, simulator: Simulator, out: Path) -> str:
    """429 to everything for a while in the middle; until the rate over 5 s is at 90 % of what it was before."""
    cap, latency = 10, 0.25
    simulator.reset()
    simulator.dials("mistral", latency=latency)
    driver = run(corpus, simulator, out, "mistral", f"providers.mistral.in_flight={cap}")
    while len(submitted(simulator)) < 120:
        time.sleep(0.05)
    before = submitted(simulator)
    normal = len([at for at in before if at > before[-1] - 2]) / 2
    simulator.dials("mistral", rpm=1)
    time.sleep(STORM_SECONDS)
    simulator.dials("mistral", rpm=0)
    over = time.monotonic()
    _, err = driver.communicate()
    assert driver.returncode == 0, err
    arrivals = submitted(simulator)
    back = next(
        (
            end
            for end in arrivals
            if end > over and len([at for at in arrivals if end - 5 < at <= end]) / 5 >= 0.9 * normal
        ),
        None,
    )
    gap = max(later - earlier for earlier, later in pairwise(arrivals))
    told = "not within the run" if back is None else f"{back - over:.1f} s after its end (the window of 5 s included)"
    return f"storm of 429s for {STORM_SECONDS:g} s: longest silence {gap:.1f} s; 90 % of the rate again {told}"


def main() -> None:
    os.environ.update(DATALAB_API_KEY=KEY, MISTRAL_API_KEY=KEY)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = make_pdf_corpus(folder / "corpus", DOCUMENTS)
        profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
        with Simulator(Profile.from_dict(profile)) as simulator:
            print(case(corpus, simulator, folder / "1", "mistral", 20, 0, 1.0), flush=True)
            print(case(corpus, simulator, folder / "2", "mistral", 10, 900, 0.2), flush=True)
            print(case(corpus, simulator, folder / "3", "datalab", 20, 0, 3.0), flush=True)
            print(storm(corpus, simulator, folder / "4"), flush=True)


if __name__ == "__main__":
    main()
