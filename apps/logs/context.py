"""The context of log entries: the id of the request that started the work, and facts of its run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, ParamSpec, TypeVar

from apps.core.monitoring.telemetry import parent

P = ParamSpec("P")
T = TypeVar("T")

request_id: ContextVar[str] = ContextVar("request_id", default="")
_NONE: Mapping[str, Any] = {}
run_facts: ContextVar[Mapping[str, Any]] = ContextVar("run_facts", default=_NONE)


def bind_log_context(**facts: Any) -> None:
    """Add facts to all later entries of this task or thread and of the tasks that it starts."""
    run_facts.set({**run_facts.get(), **facts})


@contextmanager
def added_log_context(**facts: Any) -> Iterator[None]:
    """Add facts to the entries of the block."""
    with log_context(request_id.get(), **{**run_facts.get(), **facts}):
        yield


@contextmanager
def log_context(request: str, **facts: Any) -> Iterator[None]:
    """Log the entries of the block with this request id, which may have ended, and these facts."""
    tokens = request_id.set(request), run_facts.set(facts)
    try:
        yield
    finally:
        request_id.reset(tokens[0])
        run_facts.reset(tokens[1])


def with_context(work: Callable[P, T]) -> Callable[P, T]:
    """Return `work` for another thread, with the log context and trace span of this one."""
    context = background_context()

    def run_in_context(*args: P.args, **kwargs: P.kwargs) -> T:
        # A copy, as several threads may be in it at once.
        return context.copy().run(work, *args, **kwargs)

    return run_in_context


def background_context() -> Context:
    """Return a context for background work with only the request id, the facts and the span.

    Other values of a request's context, such as its thread for sync code, end with the request.
    """
    context = Context()
    context.run(request_id.set, request_id.get())
    context.run(run_facts.set, run_facts.get())
    context.run(parent.set, parent.get())
    return context
