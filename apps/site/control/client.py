"""The commands' side. Without a running server, this process does the work."""

import json
from pathlib import Path
from typing import Any

from apps.core.config import config
from apps.core.data import folder_lock, lost_changes
from apps.core.errors import CodeinfoError, Unavailable
from apps.index.grams import reset_grams
from apps.index.texts import reset_texts
from apps.index.types import never_cancelled
from apps.site.control.verbs import VERBS, Options, Report
from codeinfo_cli.client import Client
from codeinfo_cli.errors import CliError
from codeinfo_cli.server import running


class Refused(CodeinfoError):
    """The server answered with this error."""


def perform(verb: str, options: Options, report: Report) -> dict[str, Any]:
    """Perform a verb in the server of the data folder, or else in this process.

    Raises CodeinfoError: the server's error, or Unavailable if another process uses the folder and
    does not answer.
    """
    result = ask(config().data_dir, verb, options, report)
    if result is not None:
        return result
    folder_lock.claim()
    try:
        lost_changes.keep()
        return VERBS[verb](options, never_cancelled, report)
    finally:
        reset_texts()
        reset_grams()
        folder_lock.release()


def ask(folder: Path, verb: str, options: Options, report: Report) -> dict[str, Any] | None:
    """Send a request to the server of a data folder and return its result; None if none runs.
    Raises Refused, and Unavailable if the server ends meanwhile."""
    address = running(folder)
    if address is None:
        return None
    try:
        for event in Client(address, folder).events(f"/control/{verb}", options):
            answer = json.loads(event)
            if "progress" in answer:
                report(str(answer["progress"]))
            elif "error" in answer:
                raise Refused(answer["error"]["message"], code=answer["error"]["code"])
            else:
                result: dict[str, Any] = answer["result"]
                return result
    except CliError as error:
        raise Refused(error.message, code=error.code) from error
    raise Unavailable("The server ended before it had answered.")
