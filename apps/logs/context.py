"""Whose work a log line tells of: the request that began it, and the run that it belongs to."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, ParamSpec, TypeVar

from apps.core.telemetry import parent

P = ParamSpec("P")
T = TypeVar("T")

request_id: ContextVar[str] = ContextVar("request_id", default="")
_NONE: Mapping[str, Any] = {}
run_facts: ContextVar[Mapping[str, Any]] = ContextVar("run_facts", default=_NONE)


def bind_log_context(**facts: Any) -> None:
    """Every entry from here on, in this task or thread and in what it starts, has these facts."""
    run_facts.set({**run_facts.get(), **facts})


@contextmanager
def log_context(request: str, **facts: Any) -> Iterator[None]:
    """Entries of the block belong to a request that may have ended long ago, and have `facts`."""
    tokens = request_id.set(request), run_facts.set(facts)
    try:
        yield
    finally:
        request_id.reset(tokens[0])
        run_facts.reset(tokens[1])


def with_context(work: Callable[P, T]) -> Callable[P, T]:
    """`work` for another thread, whose entries are to say what this one's do."""
    request, facts, above = request_id.get(), run_facts.get(), parent.get()

    def on_their_behalf(*args: P.args, **kwargs: P.kwargs) -> T:
        token = parent.set(above)
        try:
            with log_context(request, **facts):
                return work(*args, **kwargs)
        finally:
            parent.reset(token)

    return on_their_behalf


def background_context() -> Context:
    """A context for background work: empty but for the request id, the facts and the trace.

    The rest of a request's context, such as its thread for sync code, ends with the request.
    """
    context = Context()
    context.run(request_id.set, request_id.get())
    context.run(run_facts.set, run_facts.get())
    context.run(parent.set, parent.get())
    return context
