"""A command's end: the running server does what is asked, or this process where none runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.index.lexical import reset_lexical
from apps.index.types import never_cancelled
from apps.index.vectors.store import claim_store, reset_store
from apps.site.control.address import connect
from apps.site.control.lines import Lines
from apps.site.control.verbs import VERBS, Options, Tell

# The result of a verification names each root.
LONGEST_ANSWER = 256_000_000


class Refused(CodeinfoError):
    """The server answered with this error."""


def perform(verb: str, options: Options, tell: Tell) -> dict[str, Any]:
    """Have the server of the data folder do it, or do it here with the stores locked.

    Raises CodeinfoError: the server's own, or Unavailable where another process has the stores and
    does not answer.
    """
    result = ask(config().data_dir, verb, options, tell)
    if result is not None:
        return result
    with _own_stores():
        return VERBS[verb](options, never_cancelled, tell)


def ask(folder: Path, verb: str, options: Options, tell: Tell) -> dict[str, Any] | None:
    """What the server of a data folder answers; None where none listens there. Raises Refused, and
    Unavailable where it ends meanwhile."""
    end = connect(folder)
    if end is None:
        return None
    with end:
        lines = Lines(end, LONGEST_ANSWER)
        try:
            lines.write({"verb": verb, "options": dict(options)})
            while "progress" in (answer := lines.read()):
                tell(str(answer["progress"]))
        except (OSError, EOFError, ValueError) as error:
            raise Unavailable(
                "The server hung up before it had answered: it ended, or has too many such "
                "connections."
            ) from error
    if "error" in answer:
        raise Refused(answer["error"]["message"], code=answer["error"]["code"])
    result: dict[str, Any] = answer["result"]
    return result


@contextmanager
def _own_stores() -> Iterator[None]:
    try:
        claim_store()
    except Unavailable as error:
        raise Unavailable(
            f"Another process uses the stores in {config().data_dir}, and does not answer on its "
            "control socket: stop it, then try again.",
            retryable=False,
        ) from error
    try:
        yield
    finally:
        reset_lexical()
        reset_store()
