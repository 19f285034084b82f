"""`oeb plan` against what happens: two sizes of corpus, three Runs each, on an S3 server behind a proxy that counts.

`make bench-plan` prints measured and foretold counts, bytes, requests and wall time, and their ratios; the larger size
is foretold from the output of the smaller one.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request

from oeb_ray import storage
from oeb_ray.forecast import Document, Scale, document_of, forecast
from oeb_ray.simulator import Profile, Simulator
from tests.conftest import s3_server
from tests.helpers import KEY, SmallCorpus, make_pdf_corpus, oeb
from tests.proxies import S3Proxy

SIZES = (60, 200)
LATENCY, IN_FLIGHT, RUNS = 1.0, 10, 3


class Measured(NamedTuple):
    objects: int
    bytes: int
    writes: int
    reads: int
    seconds: float


def measured(corpus: str, simulator: Simulator, proxy: S3Proxy, out: str) -> Measured:
    """What a job of three Runs leaves and asks for."""
    kinds: Counter[str] = Counter()

    def count(request: Request) -> str:
        lists = "list-type" in request.query_params
        kinds[f"{request.method}{' list' if lists else ''}"] += 1
        return ""

    proxy.rule = count
    words = [
        "benchmark", "corpus=manifest", f"corpus.manifest='{corpus}/manifest.parquet'", "provider=[datalab]",
        f"providers.datalab.address='{simulator.url}/datalab'", f"providers.datalab.in_flight={IN_FLIGHT}",
        "providers.datalab.options=[{mode: fast}, {mode: balanced}, {mode: accurate}]",
        "providers.datalab.poll_interval=0.2", f"storage.root='{out}'", "cluster=inline",
    ]  # fmt: skip
    began = time.monotonic()
    code, _, err = oeb(*words, timeout=1000)
    seconds = time.monotonic() - began
    assert code == 0, err
    proxy.rule = lambda request: ""
    there = storage.listed(out)
    deleted = kinds["DELETE"]
    reads = kinds["GET"] + kinds["HEAD"]
    return Measured(
        len(there), sum(stamp.size for stamp in there.values()), kinds.total() - reads - deleted, reads, seconds
    )


@contextmanager
def place() -> Iterator[tuple[Path, Simulator, S3Proxy, str]]:
    os.environ["DATALAB_API_KEY"] = KEY
    with tempfile.TemporaryDirectory() as name, s3_server(Path(name)) as bucket:
        folder = Path(name)
        proxy = S3Proxy(os.environ["AWS_ENDPOINT_URL"])
        os.environ["AWS_ENDPOINT_URL"] = proxy.url
        corpus = make_pdf_corpus(folder / "answers", max(SIZES))
        profile: dict[str, Any] = {
            "answers": str(corpus.predictions / "good"),
            "documents": str(corpus.folder / "docs"),
        }
        dials = {"latency": LATENCY, "latency_spread": 0.0, "price": 0.03, "state_cost": True}
        with Simulator(Profile.from_dict(profile | {"vendors": {"datalab": dials}})) as simulator:
            yield folder, simulator, proxy, bucket
        proxy.close()


def corpus_keys(corpus: SmallCorpus) -> list[str]:
    return [key for key in storage.listed(str(corpus.folder)) if not key.startswith("predictions")]


def copy(source: str, target: str, key: str) -> None:
    storage.put(f"{target}/{key}", storage.read(f"{source}/{key}"))


def main() -> None:
    example = Document()
    with place() as (folder, simulator, proxy, bucket):
        for documents in SIZES:
            corpus = make_pdf_corpus(folder / str(documents), documents)
            proxy.rule = lambda request: ""
            with ThreadPoolExecutor(16) as threads:
                copying = partial(copy, str(corpus.folder), f"{bucket}/corpus-{documents}")
                list(threads.map(copying, corpus_keys(corpus)))
            out = f"{bucket}/{documents}"
            seen = measured(f"{bucket}/corpus-{documents}", simulator, proxy, out)
            if documents == SIZES[0]:
                example, _, _ = document_of(out)  # what both sizes are foretold from
            scale = Scale(documents, RUNS, suites=2, nodes=1, cpus=1, in_flight=IN_FLIGHT, request=0.01)
            told = forecast(scale, example)
            print(f"{documents} documents x {RUNS} runs, {example.vendor_seconds:.2f} s each:")
            for name, value in seen._asdict().items():
                foretold = getattr(told, name)
                print(
                    f"  {name:<8} measured {value:>12,.0f}  foretold {foretold:>12,.0f}  {foretold / value:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
