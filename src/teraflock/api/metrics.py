"""Metrics for Prometheus. One registry per server, so that tests can run several servers.

Requests are counted by route, never by path: a label with ids would grow without bound.
"""

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LATENCY_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UNKNOWN_ROUTE: Final = "-"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter(
            "tera_requests", "Requests answered", ("method", "route", "status"), registry=self.registry
        )
        self._latency = Histogram(
            "tera_request_seconds",
            "Time to the first byte of a response",
            ("method", "route"),
            buckets=LATENCY_SECONDS,
            registry=self.registry,
        )
        self.streams = Gauge("tera_event_streams", "Clients that follow events", registry=self.registry)
        self._texts: list[Callable[[], str]] = []
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._histograms: dict[tuple[str, str], Histogram] = {}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Caches the labelled children: looking them up costs more than counting."""
        counter = self._counters.get((method, route, status))
        if counter is None:
            counter = self._requests.labels(method, route, str(status))
            self._counters[method, route, status] = counter
        counter.inc()
        histogram = self._histograms.get((method, route))
        if histogram is None:
            histogram = self._histograms[method, route] = self._latency.labels(method, route)
        histogram.observe(seconds)

    def also(self, name: str, sentence: str, label: str, values: Callable[[], Mapping[str, float]]) -> None:
        """A gauge whose values are computed when Prometheus reads them. Without a label, the key is empty."""
        self.registry.register(_Asked(name, sentence, label, values))

    def also_text(self, text: Callable[[], str]) -> None:
        """Metrics in the text format, written when Prometheus reads them."""
        self._texts.append(text)

    def text(self) -> bytes:
        return generate_latest(self.registry) + "".join(text() for text in self._texts).encode()


class _Asked(Collector):
    def __init__(
        self, name: str, sentence: str, label: str, values: Callable[[], Mapping[str, float]]
    ) -> None:
        self._name, self._sentence, self._label, self._values = name, sentence, label, values

    def collect(self) -> list[Metric]:
        family = GaugeMetricFamily(self._name, self._sentence, labels=[self._label] if self._label else [])
        for key, value in self._values().items():
            family.add_metric([key] if self._label else [], value)
        return [family]

    def describe(self) -> list[Metric]:
        return [GaugeMetricFamily(self._name, self._sentence)]
