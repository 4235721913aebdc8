"""The client of the control socket. Without a running server, this process does the work."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.index.grams import reset_grams
from apps.index.lexical import reset_lexical
from apps.index.texts import reset_texts
from apps.index.types import never_cancelled
from apps.index.vectors.store import claim_store, reset_store
from apps.site.control.address import connect
from apps.site.control.lines import Lines
from apps.site.control.verbs import VERBS, Options, Report

# A verification returns a result for each root.
LONGEST_ANSWER = 256_000_000


class Refused(CodeinfoError):
    """The server answered with this error."""


def perform(verb: str, options: Options, report: Report) -> dict[str, Any]:
    """Perform a verb in the server of the data folder, or else in this process.

    Raises CodeinfoError: the server's error, or Unavailable if another process has the stores and
    does not answer.
    """
    result = ask(config().data_dir, verb, options, report)
    if result is not None:
        return result
    with _own_stores():
        return VERBS[verb](options, never_cancelled, report)


def ask(folder: Path, verb: str, options: Options, report: Report) -> dict[str, Any] | None:
    """Send a request to the server of a data folder and return its result; None if none listens.
    Raises Refused, and Unavailable if the server ends meanwhile."""
    end = connect(folder)
    if end is None:
        return None
    with end:
        lines = Lines(end, LONGEST_ANSWER)
        try:
            lines.write({"verb": verb, "options": dict(options)})
            while "progress" in (answer := lines.read()):
                report(str(answer["progress"]))
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
        reset_texts()
        reset_grams()
        reset_store()
