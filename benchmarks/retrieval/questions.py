"""The relevance judgements: repositories at commits, questions, and their relevant files."""

import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

SET = Path(__file__).resolve().parent.parent / "retrieval_set.json"
CATEGORIES = ("symbol", "semantic", "architecture")


@dataclass(frozen=True)
class Target:
    """A file that answers, by its path in the repository or the end of it, and perhaps its lines
    (1-based, both included)."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True)
class Question:
    text: str
    category: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Repository:
    """`index_root` is the folder of it that is searched, "" the whole; `published` has what other
    systems reached, by their names."""

    name: str
    language: str
    repository: str
    commit: str
    index_root: str
    published: dict[str, float]
    questions: tuple[Question, ...]

    def path_of(self, rel_path: str) -> str:
        """The path in the repository of a path below the index root."""
        return str(PurePosixPath(self.index_root, rel_path))


def load(file: Path = SET, only: Collection[str] = ()) -> list[Repository]:
    """The repositories of a set; `only` those named, if any are."""
    found = [_repository(entry) for entry in json.loads(file.read_text())["repositories"]]
    if unknown := set(only) - {repository.name for repository in found}:
        raise SystemExit(f"{file.name} has no repository {', '.join(sorted(unknown))}.")
    return [repository for repository in found if not only or repository.name in only]


def _repository(entry: dict[str, Any]) -> Repository:
    return Repository(
        name=entry["name"],
        language=entry["language"],
        repository=entry["repository"],
        commit=entry["commit"],
        index_root=entry["index_root"],
        published=entry.get("published", {}),
        questions=tuple(
            Question(
                query["query"],
                query["category"],
                tuple(Target(**target) for target in query["relevant"] + query["secondary"]),
            )
            for query in entry["queries"]
        ),
    )


def folder_of(repository: Repository, checkouts: Path) -> Path:
    folder = checkouts / repository.name / repository.index_root
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder. Give --checkouts, or --fetch to make them.")
    return folder.resolve()


def fetch(repository: Repository, checkouts: Path, base: str) -> None:
    """Clone `<base>/<owner>/<name>` at the set's commit, unless the folder is there already."""
    folder = checkouts / repository.name
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for command in (
        ["init", "--quiet"],
        ["fetch", "--quiet", "--depth=1", f"{base}/{repository.repository}", repository.commit],
        ["checkout", "--quiet", "--detach", "FETCH_HEAD"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
