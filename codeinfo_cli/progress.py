"""The progress of an ingest: a bar on a terminal, a line for each state elsewhere."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from codeinfo_cli import terminal
from codeinfo_cli.runs import facts_of
from codeinfo_cli.terminal import note, visible

WORDS = {"queued": "Waiting", "scanning": "Looking for files", "embedding": "Ingesting"}


@contextmanager
def progress_of(name: str) -> Iterator["Bar"]:
    """Show the progress of a run on stderr until the block ends."""
    is_drawn = terminal.is_terminal(sys.stderr)
    console = Console(stderr=True, highlight=False)
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[facts]}", markup=False),
    ]
    with Progress(
        *columns, console=console, transient=True, expand=True, disable=not is_drawn
    ) as progress:
        yield Bar(progress, visible(name))


class Bar:
    """Shows the status of a run."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = name
        self._task = progress.add_task(name, total=None, facts="")
        self._word = ""

    def show(self, status: Mapping[str, Any]) -> None:
        """Show an answer of GET /ingest/status."""
        word = WORDS.get(status["state"], status["state"])
        if self._progress.disable and word != self._word and status["state"] in WORDS:
            note(f"{word}: {self._name}")
        self._word = word
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
        """Stop drawing, for a question to the user."""
        self._progress.stop()
        yield
        self._progress.start()
