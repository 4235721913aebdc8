"""The progress of an ingest: a bar on a terminal, a line for each state elsewhere."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from codeinfo_cli import terminal
from codeinfo_cli.runs import facts_of
from codeinfo_cli.terminal import note, visible

WORDS = {"queued": "Waiting", "scanning": "Looking for files", "embedding": "Ingesting"}


class Bar(Protocol):
    """Shows the status of a run."""

    def show(self, status: Mapping[str, Any]) -> None:
        """Called with each answer of GET /ingest/status."""

    def paused(self) -> AbstractContextManager[None]:
        """Called around a question to the user."""


@contextmanager
def progress_of(name: str) -> Iterator[Bar]:
    """Show the progress of a run on stderr until the block ends."""
    if not terminal.is_terminal(sys.stderr):
        yield _Lines(name)
        return
    console = Console(stderr=True, highlight=False)
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[facts]}", markup=False),
    ]
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        yield _Bar(progress, name)


class _Bar:
    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = visible(name)
        self._task = progress.add_task(self._name, total=None, facts="")

    def show(self, status: Mapping[str, Any]) -> None:
        word = WORDS.get(status["state"], status["state"])
        percent = status.get("percent")
        self._progress.update(
            self._task,
            description=f"{word} {self._name}",
            total=None if percent is None else 100,
            completed=percent or 0,
            facts=facts_of(status),
        )

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._progress.stop()
        yield
        self._progress.start()


class _Lines:
    def __init__(self, name: str) -> None:
        self._name = name
        self._state = ""

    def show(self, status: Mapping[str, Any]) -> None:
        if status["state"] != self._state and status["state"] in WORDS:
            self._state = status["state"]
            note(f"{WORDS[self._state]}: {self._name}")

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()
