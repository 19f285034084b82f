"""The figures of a job among Ray's metrics: what Prometheus and Grafana read from any node's metrics port.

In: figures of Runs as they grow. Out: counters and gauges by run and provider. Counters begin with what this job does,
whatever earlier ones have recorded.
"""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge

TAGS = ("run", "provider")
COUNTED = {  # figures that only grow, as counters
    "done": ("oeb_predictions", "documents recorded"),
    "failed": ("oeb_errors", "documents recorded as failed"),
    "usd": ("oeb_spend_usd", "dollars that vendors stated"),
    "seconds": ("oeb_vendor_seconds", "seconds that recorded documents took"),
    "parts_done": ("oeb_parts", "parts of the tables scored"),
}
MEASURED = {
    "in_flight": ("oeb_in_flight", "documents handed out"),
    "queue": ("oeb_queue", "documents to predict that are not handed out yet"),
}


class Metrics:
    """One per job and process."""

    def __init__(self) -> None:
        self._counters = {name: Counter(metric, text, TAGS) for name, (metric, text) in COUNTED.items()}
        self._gauges = {name: Gauge(metric, text, TAGS) for name, (metric, text) in MEASURED.items()}
        self._seen: dict[tuple[str, str], float] = {}

    def tell(self, run: str, provider: str, now: Mapping[str, float]) -> None:
        """Takes the figures of a Run; one that has shrunk, since documents are asked again, adds nothing."""
        tags = {"run": run, "provider": provider}
        for name, counter in self._counters.items():
            grown = now[name] - self._seen.get((run, name), now[name])
            self._seen[run, name] = now[name]
            if grown > 0:
                counter.inc(grown, tags)
        for name, gauge in self._gauges.items():
            gauge.set(now[name], tags)
