"""Compare the call graph with jedi, the TypeScript compiler and Go's type checker.

    python -m benchmarks.callers python folder…        needs jedi (requirements-bench.txt)
    python -m benchmarks.callers typescript folder…    needs `npm ci` in benchmarks/callers_oracles
    python -m benchmarks.callers pages folder…         the same: pages of Vue and Svelte
    python -m benchmarks.callers go folder…            needs Debian's golang-go

A folder holds the package, so that imports of its own name find it.

An edge is a call and a definition that it means. Calls that the oracle does not know are not
judged. Folders after `--held-out` were not looked at while the rules were written. `--alias`
names a place that only a bundler knows, as `@/*=src/*`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.code.callgraph.callers import targets
from apps.code.callgraph.resolve import Resolver
from benchmarks.callers_project import MemoryProject

HERE = Path(__file__).parent / "callers_oracles"
PAGES = (".vue", ".svelte")
SUFFIXES = {
    "python": (".py",),
    "typescript": (".ts", ".tsx", ".json"),
    "go": (".go", "go.mod"),
    "pages": (".ts", ".tsx", ".mts", ".js", *PAGES, ".astro", ".json"),
}
COMMANDS: Mapping[str, Sequence[str]] = {
    "python": (sys.executable, "-m", "benchmarks.callers_oracles.python"),
    "typescript": ("node", "--max-old-space-size=4000", str(HERE / "typescript.cjs")),
    "pages": ("node", "--max-old-space-size=4000", str(HERE / "pages.cjs")),
    "go": ("go", "run", str(HERE / "go.go")),
}
# Debian's packages of Go stand in a GOPATH.
GO = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "CGO_ENABLED": "0"}

Key = tuple[str, str]  # path and symbol of a definition


@dataclass
class Counts:
    """Edges of one package."""

    judged: int = 0  # calls
    unjudged: int = 0
    truth: int = 0
    proven: int = 0
    proven_right: int = 0
    every: int = 0
    every_right: int = 0

    def row(self, language: str, name: str, is_held_out: bool) -> str:
        proven = _scores(self.proven_right, self.proven, self.truth)
        every = _scores(self.every_right, self.every, self.truth)
        kind = "held out" if is_held_out else "tuned on"
        cells = [language, name, kind, f"{self.judged:,}", f"{self.unjudged:,}", f"{self.truth:,}"]
        return f"| {' | '.join([*cells, *proven, *every])} |"


def _scores(right: int, found: int, truth: int) -> list[str]:
    """Precision, recall and F1."""
    precision, recall = right / max(1, found), right / max(1, truth)
    both = 2 * precision * recall / max(1e-9, precision + recall)
    return [f"{each:.3f}".replace("0.", ".", 1) for each in (precision, recall, both)]


def ask(language: str, folder: Path, aliases: Sequence[str] = ()) -> dict[str, list[Any]]:
    """What the oracle says; of a package with pages, about them."""
    environment = {**os.environ, **(GO if language == "go" else {})}
    command = [*COMMANDS[language], str(folder), *aliases]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    answer: dict[str, list[Any]] = json.loads(done.stdout)
    if language == "pages":
        return {path: calls for path, calls in answer.items() if path.endswith(PAGES)}
    return answer


def compare(language: str, folder: Path, aliases: Sequence[str] = ()) -> Counts:
    """Count the edges of a package."""
    project = MemoryProject.of_folder(folder, SUFFIXES[language])
    resolver, known, counts = Resolver(project), _by_row(project), Counts()
    for path, calls in ask(language, folder, aliases).items():
        facts = project.facts(path)
        ours = {(each.row, each.column): each for each in facts.calls} if facts else {}
        for row, column, _, truth in calls:
            if truth is None:
                counts.unjudged += 1
                continue
            wanted = {known.get((file, line), (file, f":{line}")) for file, line in truth}
            call = ours.get((row, column))
            found = targets(resolver, path, call) if call else []
            every = {_key(project, each.path, each.number) for each in found}
            proven = {_key(project, each.path, each.number) for each in found if each.proven}
            counts.judged += 1
            counts.truth += len(wanted)
            counts.proven += len(proven)
            counts.proven_right += len(proven & wanted)
            counts.every += len(every)
            counts.every_right += len(every & wanted)
    return counts


def _key(project: MemoryProject, path: str, number: int) -> Key:
    facts = project.facts(path)
    assert facts is not None
    return path, facts.definitions[number].path


def _by_row(project: MemoryProject) -> dict[tuple[str, int], Key]:
    """Path and row of a name, or of a line before it such as a decorator → the definition."""
    known: dict[tuple[str, int], Key] = {}
    for path in project.paths:
        facts = project.facts(path)
        named = [each for each in (facts.definitions if facts else ()) if each.name]
        known.update({(path, each.row): (path, each.path) for each in reversed(named)})
        for each in named:
            for row in range(each.first, each.row):
                known.setdefault((path, row), (path, each.path))
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("language", choices=sorted(COMMANDS))
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--alias", action="append", default=[], help="of pages: name=place")
    parser.add_argument("--held-out", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    print(
        "| language | package | | calls | not judged | edges | proven P | R | F1 | all P | R | F1 |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for folder in (*options.folders, *options.held_out):
        counts = compare(options.language, folder.resolve(), options.alias)
        print(counts.row(options.language, folder.name, folder in options.held_out), flush=True)


if __name__ == "__main__":
    main()
