"""Steps of the product's work, for traces and for /metrics.

    with span("search", mode="hybrid") as step:
        ...
        step.set(results=3)

Every step is timed for /metrics. Traces are sent if a standard variable names the receiver
(`OTEL_EXPORTER_OTLP_ENDPOINT`); only then OpenTelemetry is imported. Spans have counts, codes and
names defined by codeinfo. They have no texts, paths or keys of users, and no error messages.

A step is a child of the step in which it is taken. apps/logs/context.py passes `parent` to
background work.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from apps.core import __version__
from apps.core.config import Config
from apps.core.monitoring.metrics import STEP_SECONDS
from apps.core.system.command_lines import install_extra

logger = logging.getLogger("codeinfo.traces")

# The OpenTelemetry span of this task or thread; None without traces.
parent: ContextVar[Any] = ContextVar("parent", default=None)

Fact = str | int | float | bool

# How long the end of the process waits for a receiver that does not answer.
STOP_SECONDS = 5.0


class Step:
    """A step in progress, from its creation to the end of its block."""

    def __init__(self, name: str, facts: dict[str, Fact], caller: str = "") -> None:
        self._name = name
        self._started = time.perf_counter()
        self.span = _tracing.begin(name, facts, caller) if _tracing else None

    def set(self, **facts: Fact) -> None:
        if self.span is not None:
            self.span.set_attributes(facts)

    def fail(self, code: str) -> None:
        """Mark the step as failed, with an error code or the name of an exception class."""
        if self.span is not None and _tracing:
            self.span.set_status(_tracing.failed(code))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.fail(str(getattr(error, "code", "") or type(error).__name__))
        seconds = time.perf_counter() - self._started
        count(self._name, seconds)
        if also:
            also(self._name, seconds)
        if self.span is not None:
            self.span.end()


def count(name: str, seconds: float) -> None:
    """Count a step in the metrics of this process."""
    STEP_SECONDS.labels(name).observe(seconds)


# Called with each step, too. A worker tells its server, which answers /metrics.
also: Callable[[str, float], object] | None = None


def step(name: str, **facts: Fact) -> Step:
    """Return a step that is not a parent. For generators: their block runs code of the caller."""
    return Step(name, facts)


@contextmanager
def span(name: str, *, caller: str = "", **facts: Fact) -> Iterator[Step]:
    """A step that is the parent of the steps in its block. Also a decorator.

    caller: the W3C `traceparent` header of the request, if there is one
    """
    with Step(name, facts, caller) as taken:
        token = parent.set(taken.span)
        try:
            yield taken
        finally:
            parent.reset(token)


def tell(**facts: Fact) -> None:
    """Set attributes of the current step, in functions decorated with `@span`."""
    if (current := parent.get()) is not None:
        current.set_attributes(facts)


class Tracing:
    """Sends spans with OpenTelemetry."""

    def __init__(self, known: Config) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - only where traces are wanted
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        about = {"service.name": known.otel_service_name, "service.version": __version__}
        endpoint = known.otel_traces_endpoint or f"{known.otel_endpoint}/v1/traces"
        self._api = trace
        self._callers = TraceContextTextMapPropagator()
        self._provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
        # The exporter reads other OTEL_* variables itself, such as headers and timeouts.
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer("codeinfo", __version__)

    def begin(self, name: str, facts: dict[str, Fact], caller: str) -> Any:
        """Start a span, as a child of the current one, or of the caller's."""
        above = parent.get()
        if above is not None:
            context = self._api.set_span_in_context(above)
        else:
            context = self._callers.extract({"traceparent": caller})
        return self._tracer.start_span(name, context=context, attributes=facts)

    def failed(self, code: str) -> Any:
        return self._api.Status(self._api.StatusCode.ERROR, code)

    def stop(self) -> None:
        """Send the remaining spans. Returns after STOP_SECONDS at the latest."""
        last = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        last.join(STOP_SECONDS)


_tracing: Tracing | None = None


def start(known: Config) -> bool:
    """Start to send traces if the settings name a receiver. Return whether they do."""
    global _tracing
    receiver = known.otel_endpoint or known.otel_traces_endpoint
    if receiver and known.otel_traces_exporter == "otlp" and not known.otel_disabled:
        try:
            _tracing = Tracing(known)
        except ModuleNotFoundError:
            logger.warning("traces are not sent: they need %s", install_extra("traces"))
    return _tracing is not None


def stop() -> None:
    """Send the remaining spans, and stop sending."""
    global _tracing
    ending, _tracing = _tracing, None
    if ending:
        ending.stop()
