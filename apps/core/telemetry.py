"""What the product does, step by step, for traces and for /metrics.

    with span("search", mode="hybrid") as step:
        ...
        step.set(results=3)

Every step is timed for /metrics. Traces are off until one of the standard variables names where
they go (`OTEL_EXPORTER_OTLP_ENDPOINT`): only then does `start` import OpenTelemetry. What a span
tells are counts, codes and names of ours; never a text, path or key of anybody's, and so no error's
message.

A step is a child of the one it is taken in; background work is given `parent` along
(apps/logs/context.py).
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, Self

from apps.core import __version__
from apps.core.metrics import STEP_SECONDS

# The span of OpenTelemetry in which this task or thread is at work; None without traces.
parent: ContextVar[Any] = ContextVar("parent", default=None)

Fact = str | int | float | bool

# How long the end of the process may be held up by a receiver that is away.
STOP_SECONDS = 5.0


class Settings(Protocol):
    """The settings of traces."""

    @property
    def otel_endpoint(self) -> str: ...
    @property
    def otel_traces_endpoint(self) -> str: ...
    @property
    def otel_traces_exporter(self) -> str: ...
    @property
    def otel_disabled(self) -> bool: ...
    @property
    def otel_service_name(self) -> str: ...


class Step:
    """One step under way, from its making to the end of its block."""

    def __init__(self, name: str, facts: dict[str, Fact], caller: str = "") -> None:
        self._name = name
        self._started = time.perf_counter()
        self.span = _tracing.begin(name, facts, caller) if _tracing else None

    def set(self, **facts: Fact) -> None:
        if self.span is not None:
            self.span.set_attributes(facts)

    def fail(self, code: str) -> None:
        """Mark it as failed, with a code of ours or the name of an error's class."""
        if self.span is not None and _tracing:
            self.span.set_status(_tracing.failed(code))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(str(getattr(error, "code", "") or type(error).__name__))
        STEP_SECONDS.labels(self._name).observe(time.perf_counter() - self._started)
        if self.span is not None:
            self.span.end()


def step(name: str, **facts: Fact) -> Step:
    """A step that is nobody's parent: for generators, whose block others' code runs in."""
    return Step(name, facts)


@contextmanager
def span(name: str, *, caller: str = "", **facts: Fact) -> Iterator[Step]:
    """A step, and the parent of those taken in its block; also a decorator.

    `caller` is the W3C `traceparent` of who asked for it from outside, where there is one.
    """
    with Step(name, facts, caller) as taken:
        token = parent.set(taken.span)
        try:
            yield taken
        finally:
            parent.reset(token)


def tell(**facts: Fact) -> None:
    """Facts of the step that this is in, for functions that are one: `@span("search")`."""
    if (here := parent.get()) is not None:
        here.set_attributes(facts)


class Tracing:
    """OpenTelemetry, where it is wanted."""

    def __init__(self, known: Settings) -> None:
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
        # Headers, time limits and the like it reads from their OTEL_* variables itself.
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer("codeinfo", __version__)

    def begin(self, name: str, facts: dict[str, Fact], caller: str) -> Any:
        """A span that has begun, below the parent or, without one, the caller."""
        above = parent.get()
        if above is not None:
            context = self._api.set_span_in_context(above)
        else:
            context = self._callers.extract({"traceparent": caller})
        return self._tracer.start_span(name, context=context, attributes=facts)

    def failed(self, code: str) -> Any:
        return self._api.Status(self._api.StatusCode.ERROR, code)

    def stop(self) -> None:
        """Send what is left; returns when it has gone, or after some seconds."""
        last = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        last.join(STOP_SECONDS)


_tracing: Tracing | None = None


def start(known: Settings) -> bool:
    """Begin to send traces if the variables say where to; whether they do."""
    global _tracing
    wanted = known.otel_endpoint or known.otel_traces_endpoint
    if wanted and known.otel_traces_exporter == "otlp" and not known.otel_disabled:
        _tracing = Tracing(known)
    return _tracing is not None


def stop() -> None:
    """Send the last spans, and none from here on."""
    global _tracing
    ending, _tracing = _tracing, None
    if ending:
        ending.stop()
