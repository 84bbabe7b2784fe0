"""Counts and times for Prometheus, by route and by collection."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..observer import Observer
from ..service import Service

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Metrics(Observer):
    """The metrics of one app, and the observer of its searchers."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_collection = ["collection"]
        self.in_flight = Gauge("starshl_requests_in_flight", "Requests under way.", registry=registry)
        self._requests = Counter(
            "starshl_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "starshl_request_seconds", "Time of requests.", ["route"], buckets=_SECONDS, registry=registry
        )
        self._queries = Counter("starshl_queries", "Queries searched for.", by_collection, registry=registry)
        self._batches = Histogram(
            "starshl_search_batch_requests", "Requests per batch.", by_collection, buckets=_SIZES, registry=registry
        )
        self._search = Histogram(
            "starshl_search_seconds", "Time of search batches.", by_collection, buckets=_SECONDS, registry=registry
        )
        self._encode = Histogram(
            "starshl_encode_seconds", "Time of encoding batches.", by_collection, buckets=_SECONDS, registry=registry
        )
        self._rows = Counter("starshl_encoded_rows", "Rows encoded.", by_collection, registry=registry)
        self._changes = Counter("starshl_changed_items", "Items changed.", ["collection", "kind"], registry=registry)
        self._change = Histogram(
            "starshl_change_seconds", "Time of changes.", by_collection, buckets=_SECONDS, registry=registry
        )

    def watch(self, service: Service) -> None:
        """Show the sizes of the collections of a service, asked for when somebody looks."""
        self.registry.register(_Sizes(service))

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; an unknown method or address gets no label of its own, or clients could invent many."""
        self._requests.labels(method if method in _METHODS else "other", route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def searched(self, collection: str, n_requests: int, n_queries: int, seconds: float) -> None:
        self._queries.labels(collection).inc(n_queries)
        self._batches.labels(collection).observe(n_requests)
        self._search.labels(collection).observe(seconds)

    def encoded(self, collection: str, n_requests: int, n_rows: int, seconds: float) -> None:
        self._rows.labels(collection).inc(n_rows)
        self._encode.labels(collection).observe(seconds)

    def changed(self, collection: str, kind: str, n_items: int, seconds: float) -> None:
        self._changes.labels(collection, kind).inc(n_items)
        self._change.labels(collection).observe(seconds)


class _Sizes(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        items = GaugeMetricFamily("starshl_items", "Items stored.", labels=["collection"])
        waiting = GaugeMetricFamily("starshl_searches_waiting", "Searches that wait.", labels=["collection"])
        jobs = GaugeMetricFamily("starshl_jobs", "Jobs by state.", labels=["collection", "state"])
        for name, searcher in self._service.searchers.items():
            # Otherwise, this would wait for a restore.
            if searcher.is_ready:
                items.add_metric([name], len(searcher))
            waiting.add_metric([name], searcher.n_waiting)
            states = [job.state for job in self._service.jobs.list(name)]
            for state in sorted(set(states)):
                jobs.add_metric([name, state], states.count(state))
        return [items, waiting, jobs]
