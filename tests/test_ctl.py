"""Jobs are steered from another process: paused, resumed, stopped, and held to other limits, against the simulator."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oeb_ray import control, storage
from oeb_ray.calls import Owner
from oeb_ray.cli.main import main
from oeb_ray.control import Orders
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import KEY, SmallCorpus, make_pdf_corpus, oeb, start_oeb
from tests.nodes import Nodes

DOCUMENTS = 40


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), documents=DOCUMENTS)


@pytest.fixture
def simulator(corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    dials = {"latency": 0.3, "latency_spread": 0.0, "price": 0.03}
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
    with Simulator(Profile.from_dict(profile | {"vendors": {"datalab": dials}})) as opened:
        yield opened


def words_of(corpus: SmallCorpus, simulator: Simulator, out: Path, *more: str) -> list[str]:
    return [
        "benchmark", "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab]",
        f"providers.datalab.address='{simulator.url}/datalab'", "providers.datalab.poll_interval=0.1",
        "providers.datalab.in_flight=2", f"storage.root='{out}'", "cluster=inline", *more,
    ]  # fmt: skip


def sent(simulator: Simulator) -> int:
    return sum(simulator.stats()["datalab"]["submissions"].values())


def wait_for(what: Callable[[], object], job: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert job.poll() is None, job.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)


def begun(job: subprocess.Popen[str], out: Path, simulator: Simulator) -> None:
    """Waits until a job asks, and can be steered."""
    wait_for(lambda: sent(simulator) > 3 and control.working(str(out)), job)


def test_pause_set_and_resume_from_another_process(corpus, simulator, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    job = start_oeb(*words_of(corpus, simulator, out))
    begun(job, out, simulator)
    assert main(["ctl", str(out), "pause"]) == 0
    time.sleep(0.3)  # what had its slot is sent
    before = sent(simulator)
    assert main(["ctl", str(out), "set", "datalab.in_flight=6"]) == 0
    assert main(["ctl", str(out)]) == 0
    shown = capsys.readouterr().out
    assert ", paused" in shown and "datalab: in_flight=6  rpm=-  max_usd=-" in shown
    assert sent(simulator) == before < DOCUMENTS
    assert simulator.stats()["datalab"]["peak_in_flight"] == 2
    assert main(["ctl", str(out), "resume"]) == 0
    _, err = job.communicate(timeout=110)
    assert job.returncode == 0, err
    assert simulator.stats()["datalab"]["peak_in_flight"] == 6
    assert "paused from elsewhere" in err and "datalab: in_flight=6" in err
    assert sent(simulator) == DOCUMENTS
    assert not storage.listed(str(out / "owners")), "what was said and ordered is taken back"


def test_stop_ends_as_an_interrupt_does(corpus, simulator, tmp_path) -> None:
    out = tmp_path / "out"
    job = start_oeb(*words_of(corpus, simulator, out))
    begun(job, out, simulator)
    assert main(["ctl", str(out), "stop"]) == 0
    _, err = job.communicate(timeout=110)
    assert job.returncode == 130 and "the same command goes on" in err, err
    before = sent(simulator)
    assert before < DOCUMENTS and len(list(out.glob("*/records/*.json"))) == before, "what was under way is recorded"


def test_a_lower_limit_on_money_holds_for_what_is_spent_already(corpus, simulator, tmp_path) -> None:
    out = tmp_path / "out"
    job = start_oeb(*words_of(corpus, simulator, out))
    begun(job, out, simulator)
    assert main(["ctl", str(out), "set", "datalab.max_usd=0.9"]) == 0
    _, err = job.communicate(timeout=110)
    assert job.returncode == 3 and "max_usd=0.9 is reached" in err, err
    assert sent(simulator) * 0.03 <= 0.9 + 2 * 0.03


@pytest.mark.ray
@pytest.mark.s3
def test_a_cluster_s_jobs_are_found_by_its_address(corpus, simulator, nodes: Nodes, tmp_path) -> None:
    out = tmp_path / "out"
    place = ["cluster=existing", f"cluster.address='{nodes.address}'"]
    job = start_oeb(*words_of(corpus, simulator, out, *place))
    begun(job, out, simulator)
    assert main(["ctl", str(out), "pause"]) == 0
    time.sleep(0.3)
    before = sent(simulator)
    code, shown, err = oeb("ctl", nodes.address, "set", "datalab.in_flight=20")
    assert code == 0 and "done" in shown, err
    assert sent(simulator) == before < DOCUMENTS, "the pool knows that the job is paused"
    assert main(["ctl", str(out), "resume"]) == 0
    _, err = job.communicate(timeout=110)
    assert job.returncode == 0, err
    assert sent(simulator) == DOCUMENTS


def test_what_cannot_be_ordered_is_refused_before_any_job_is_told(tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert main(["ctl", str(out), "pause"]) == 2
    assert "no job is at work" in capsys.readouterr().err
    owner = Owner()
    owner.beat(str(out), job={"limits": {"datalab": {}}, "runs": []})
    for words, said in (
        (["pawse"], "did you mean pause"),
        (["set"], "limits follow `set`"),
        (["pause", "datalab.in_flight=3"], "limits follow `set`"),
        (["set", "datalab.in_flight=2.5"], "wants a whole number"),
        (["set", "datalab.max_usd=-1"], "wants a number above 0"),
        (["set", "datalab.max_usd=nan"], "wants a number above 0"),
        (["set", "datalab.in_fligth=2"], "did you mean in_flight"),
        (["set", "datlab.in_flight=2"], "did you mean datalab"),
        (["set", "datalab.in_flight=4", "datalab=4"], "no such limit"),
        (["pause", "--job", "other"], "no job 'other'"),
    ):
        assert main(["ctl", str(out), *words]) == 2, words
        assert said in capsys.readouterr().err
    assert list(storage.listed(str(out / "owners"))) == [f"{owner.name}.json"]


@pytest.mark.parametrize(
    "written",
    [b"", b"[]", b"{" * 5000, b'{"n": true}', b'{"n": 1, "limits": {"a": {"in_flight": "4", "x": 1}, "b": 3}}'],
)
def test_orders_that_are_none_order_nothing(tmp_path, written) -> None:
    storage.put(f"{tmp_path}/owners/job.orders", written)
    orders = control.orders_for(str(tmp_path), "job")
    assert not orders.paused and not orders.stop and not any(orders.limits.values())


def test_orders_are_read_back_as_they_were_given(tmp_path) -> None:
    orders = Orders(3, True, False, {"datalab": {"in_flight": 4, "max_usd": 50.5}})
    control.give(str(tmp_path), "job", orders)
    assert control.orders_for(str(tmp_path), "job") == orders
