"""The verbs, performed by the server or by the command itself."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.core.errors import InvalidInput
from apps.index.types import Check
from apps.ingest.verification.outcome import compare_all
from apps.site.backup.making import make

Options = Mapping[str, Any]
Report = Callable[[str], None]
Verb = Callable[[Options, Check, Report], dict[str, Any]]


def verify(options: Options, check: Check, report: Report) -> dict[str, Any]:
    """Options: `source` and `mending` (bool), `roots` (list of paths or names)."""
    outcome = compare_all(
        source=_typed(options, "source", bool, False),
        with_repair=_typed(options, "mending", bool, False),
        roots=[str(root) for root in _typed(options, "roots", list, [])],
        check=check,
        report=report,
    )
    return outcome.as_json()


def backup(options: Options, check: Check, report: Report) -> dict[str, Any]:
    """Options: `file` (an absolute path) and `force` (bool)."""
    file = Path(_typed(options, "file", str, ""))
    return make(file, force=_typed(options, "force", bool, False), check=check, report=report)


VERBS: dict[str, Verb] = {"verify": verify, "backup": backup}


def _typed(options: Options, name: str, kind: type, default: Any) -> Any:
    value = options.get(name, default)
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} must be of type {kind.__name__}")
    return value
