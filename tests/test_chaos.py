"""Whatever is killed, wherever the work is stored: nothing is bought twice, and nothing that was paid for is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from oeb_ray import storage
from oeb_ray.errors import StorageError
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.helpers import KEY, ROUNDS, SmallCorpus, contents, make_pdf_corpus, start_oeb
from tests.nodes import Nodes
from tests.proxies import S3Proxy

DOCUMENTS = 300
VENDORS = ("datalab", "mistral")
VICTIMS = ("driver alone", "pool", "worker", "raylet", "driver", "driver and its Ray", "storage")
OUTAGES = ("cut", "SlowDown", "InternalError", "hang")
LIMITS = {"datalab": Limits(10), "mistral": Limits(5)}
QUIET = {"latency": 0.02, "latency_spread": 0.0, "price": 0.03, "state_cost": True}
FAULTS = {"drop_in_answer": 0.01, "poll_drop": 0.01, "poll_503": 0.01} | (
    {"fail_503": 0.003} if ROUNDS > 2 else {}
)  # 20 s
LOUD = QUIET | {"latency": 0.1, "latency_spread": 1.0} | FAULTS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), DOCUMENTS)


@pytest.fixture(scope="module")
def simulator(corpus: SmallCorpus) -> Iterator[Simulator]:
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATALAB_API_KEY", KEY)
        patch.setenv("MISTRAL_API_KEY", KEY)
        with Simulator(Profile.from_dict(profile | {"vendors": dict.fromkeys(VENDORS, QUIET)})) as opened:
            yield opened


@pytest.fixture(scope="module")
def undisturbed(
    corpus: SmallCorpus, simulator: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    ended(start_oeb("benchmark", *words_of(corpus, simulator, str(out), "cluster=inline")))
    return contents(str(out))


def words_of(corpus: SmallCorpus, simulator: Simulator, out: str, *more: str) -> list[str]:
    return [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab,mistral]",
        f"providers.datalab.address='{simulator.url}/datalab'", "providers.datalab.poll_interval=0.1",
        f"providers.mistral.address='{simulator.url}/mistral'", f"storage.root='{out}'", *more,
    ]  # fmt: skip


def ended(driver: subprocess.Popen[str], *codes: int) -> None:
    """Waits for its end, with 0 or one of the exit codes."""
    _, err = driver.communicate(timeout=300 if ROUNDS <= 2 else 900)
    assert driver.returncode in (0, *codes), err


def bought(simulator: Simulator) -> int:
    return sum(sum(simulator.stats()[vendor]["accepted"].values()) for vendor in VENDORS)


@dataclass(frozen=True)
class Round:
    """What a seed stands for."""

    seed: int

    @property
    def dice(self) -> random.Random:
        return random.Random(self.seed)

    @property
    def victim(self) -> str:
        return VICTIMS[self.seed % len(VICTIMS)]

    @property
    def on_s3(self) -> bool:
        return self.victim == "storage" or (self.seed + self.seed // len(VICTIMS)) % 2 == 1

    @property
    def on_nodes(self) -> bool:
        return self.victim in ("pool", "worker", "raylet", "driver")

    @property
    def kills(self) -> int:
        return 1 if ROUNDS <= 2 else self.dice.randrange(1, 4)


def disturb(
    this: Round, driver: subprocess.Popen[str], simulator: Simulator, nodes: Nodes | None, proxy: S3Proxy | None
) -> bool:
    """Waits until some documents more are bought, and kills; False if the job ended before."""
    before = bought(simulator) + this.dice.randrange(20, (2 * DOCUMENTS - 100) // this.kills)
    while driver.poll() is None and bought(simulator) < before:
        time.sleep(0.02)
    if driver.poll() is not None:
        return False
    if this.victim.startswith("driver"):
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        return True
    if proxy is not None:
        outage(proxy, this.dice)
        return proxy.seen.keys() - {""} != set()
    assert nodes is not None
    if this.victim == "raylet":
        nodes.kill_raylet()
        return True
    title = {"pool": "ray::PoolActor", "worker": "ray::do_"}[this.victim]
    return nodes.kill(title, alive=lambda: driver.poll() is None)


def outage(proxy: S3Proxy, dice: random.Random) -> None:
    """Storage answers nothing, or refusals, for some seconds."""
    kind = dice.choice(OUTAGES)
    proxy.rule = lambda request: kind
    time.sleep(dice.uniform(1, 8))
    proxy.rule = lambda request: ""


@pytest.fixture
def proxy(s3: str) -> Iterator[S3Proxy]:
    """In front of the S3 server, for those who are told of it."""
    opened = S3Proxy(os.environ["AWS_ENDPOINT_URL"])
    yield opened
    opened.close()


@pytest.mark.chaos
@pytest.mark.ray
@pytest.mark.s3
@pytest.mark.timeout(400 if ROUNDS <= 2 else 1500)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_any_kill_buys_nothing_twice(seed, corpus, simulator, undisturbed, tmp_path, request) -> None:
    this = Round(seed)
    out = f"{request.getfixturevalue('s3')}/{tmp_path.name}" if this.on_s3 else str(tmp_path / "out")
    nodes: Nodes | None = request.getfixturevalue("nodes") if this.on_nodes else None
    place = ["cluster=local", "cluster.cpus=1"] if this.victim == "driver and its Ray" else ["cluster=inline"]
    if nodes is not None:
        place = ["cluster=existing", f"cluster.address='{nodes.address}'"]
    words = words_of(corpus, simulator, out, *place)
    proxy: S3Proxy | None = request.getfixturevalue("proxy") if this.victim == "storage" else None
    where = {"AWS_ENDPOINT_URL": proxy.url} if proxy else {}
    simulator.reset()
    set_dials(simulator, LOUD)
    driver = start_oeb("benchmark", *words, env=where)
    killed = 0
    for _ in range(this.kills):
        killed += disturb(this, driver, simulator, nodes, proxy)
        if driver.poll() is not None and killed and this.victim.startswith("driver"):
            driver = start_oeb("benchmark", *words)
    ended(driver, *([StorageError.exit_code] if proxy else []))
    if driver.returncode:  # it has said so, and goes on later
        ended(start_oeb("benchmark", *words))
    assert killed, "the job ended before there was one to kill"
    assert not faults(simulator.log(), [out], LIMITS), this
    named = records_of(out, "Unreachable")
    first = {vendor: dict(simulator.stats()[vendor]["accepted"]) for vendor in VENDORS}
    assert all(count == 1 for counts in first.values() for count in counts.values()), "without a retry no second job"
    set_dials(simulator, QUIET | dict.fromkeys(FAULTS, 0.0))
    ended(start_oeb("benchmark", *words, "--retry-failed"))
    assert not faults(simulator.log(), [out], LIMITS), this
    assert bought(simulator) <= 2 * DOCUMENTS + named, "only what was named as unknown is bought again"
    assert contents(out) == undisturbed


def set_dials(simulator: Simulator, dials: dict[str, Any]) -> None:
    for vendor in VENDORS:
        simulator.dials(
            vendor, **{name: value for name, value in dials.items() if name != "state_cost" or vendor == "mistral"}
        )


def records_of(out: str, error: str) -> int:
    """How many records name this error."""
    keys = [key for key in storage.listed(out) if "/records/" in key]
    return sum(f'"type": "{error}"' in storage.read(storage.join(out, key)).decode() for key in keys)
