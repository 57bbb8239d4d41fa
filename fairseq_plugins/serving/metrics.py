"""What Prometheus reads of the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PREFIX = "fairseq_plugins_"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(f"{_PREFIX}requests", "Answered requests", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            f"{_PREFIX}request_seconds", "Time to the answer", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self.characters = Counter(
            f"{_PREFIX}characters", "Characters that were translated", ["model"], registry=self.registry
        )
        self.batches = Histogram(
            f"{_PREFIX}batch_sentences",
            "Sentences that were decoded together",
            buckets=_SENTENCES,
            registry=self.registry,
        )
        self._waiting = Gauge(f"{_PREFIX}waiting_sentences", "Sentences that wait", registry=self.registry)

    def watch(self, waiting: Callable[[], int]) -> None:
        """Asks for the sentences that wait whenever the metrics are read."""
        self._waiting.set_function(waiting)

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self.registry)


class MeasuredApplication:
    """Counts the requests of an application.

    Args:
        application: that answers.
        metrics: where they are counted.
        paths: that are counted by name; what else is asked for is counted as ``other``.
    """

    def __init__(self, application: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self._application, self._metrics, self._paths = application, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"
        started = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(path, message["status"]).inc()
                self._metrics.seconds.labels(path).observe(time.perf_counter() - started)
            await send(message)

        await self._application(scope, receive, counted)
