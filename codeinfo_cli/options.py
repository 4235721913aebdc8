"""Options that several verbs have."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from codeinfo_cli import completion

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Write the answer as JSON.")
language = click.option("-t", "--language", metavar="NAME", help="Only files of this language.")
path_filter = click.option(
    "-g",
    "--glob",
    "--include",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Only files that match, such as '*.py' or 'src/*'. Repeatable.",
)
# Of the verbs whose --json writes one page.
cursor = click.option("--cursor", default="", hidden=True)
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def repository(function: F) -> F:
    """Add --repo and --all."""
    every = click.option("-a", "--all", "every", is_flag=True, help="All repositories.")
    named = click.option(
        "-R",
        "--repo",
        "--repository",
        "repos",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.repositories,
        help="A repository, by name or folder. Repeatable. By default the one that contains the "
        "current folder, otherwise all.",
    )
    return named(every(function))


def file_filter(globs: tuple[str, ...], folder: str = "") -> str:
    """Return the `path` of a tool: globs in a folder of the repository, "" if there are none.

    As in ripgrep, a name without a slash matches in every folder, and `!` is not supported.
    """
    if not globs:
        return folder
    if any(glob.startswith("!") for glob in globs):
        raise click.UsageError("A glob that leaves files out (!) is not supported.")
    named = [glob if _is_pattern(glob) else f"**/{glob}" for glob in globs]
    joined = named[0] if len(named) == 1 else f"{{{','.join(named)}}}"
    return f"{_escaped(folder.rstrip('/'))}/{joined}" if folder else joined


def _is_pattern(glob: str) -> bool:
    return "/" in glob or any(mark in glob for mark in "*?[{")


def _escaped(folder: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in folder)
