"""Which share of the files that answer a question is covered within a number of tokens.

    python -m benchmarks.coverage --checkouts DIR [--data DIR] [--set FILE] [--ripgrep PROGRAM]

Three ways to spend tokens are compared, on the questions of a retrieval set: one call of Context
with that `max_tokens`; VectorSearch with 20 results, as many as fit; and grep-and-read: the files
with most distinct words of the question, each with WINDOW lines around the line that has most.
A file is covered if one of its lines is in the answer. Tokens are of OpenAI's encoding o200k, of
the text that a client of MCP gets; of grep-and-read, of the text alone.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import product
from benchmarks.agents import token_counts
from benchmarks.retrieval import direct, questions
from benchmarks.retrieval.others import grep
from benchmarks.retrieval.questions import Question, Repository, folder_of

BUDGETS = (500, 1_000, 2_000, 4_000)
WINDOW = 30
MAX_FILES = 60

# (path in the repository, text), in the order in which they are read.
Pieces = Sequence[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--set", type=Path, default=questions.SET)
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    parser.add_argument("--ripgrep", type=Path, help="the program; without it, grep is left out")
    options = parser.parse_args()
    repositories = questions.load(options.set)
    checkouts = options.checkouts.resolve()
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        product.set_up((options.data or Path(temporary) / "data").resolve(), [checkouts])
        direct.ingest_all(repositories, checkouts, again=False)
        direct.load_all(repositories)
        rows = {"Context": context(repositories), "VectorSearch": vector_search(repositories)}
        if options.ripgrep:
            rows["grep and read"] = grep_and_read(repositories, checkouts, options.ripgrep)
    print(f"| covered within tokens | {' | '.join(f'{b:,}' for b in BUDGETS)} |")
    print("| --- |" + " --- |" * len(BUDGETS))
    for name, shares in rows.items():
        print(f"| {name} | {' | '.join(f'{share:.3f}'.lstrip('0') for share in shares)} |")


def context(repositories: Sequence[Repository]) -> list[float]:
    """The shares of Context, one for each budget. Raises SystemExit if an answer is too long."""
    from apps.tools.context.tool import CONTEXT

    shares = []
    for budget in BUDGETS:
        covered: list[bool] = []
        texts: list[str] = []
        for repository, question in _questions(repositories):
            arguments = {"question": question.text, "repository": repository.name}
            limited = arguments | {"max_tokens": budget}
            full = CONTEXT.run(limited)
            paths = {repository.path_of(row["relPath"]) for row in full["results"]}
            covered += _covered(question, paths)
            texts.append(_json(CONTEXT.run(limited, is_compact=True)))
        if too_long := sum(tokens > budget for tokens in token_counts(texts)):
            raise SystemExit(f"{too_long} answers of Context have more than {budget:,} tokens.")
        shares.append(sum(covered) / len(covered))
    return shares


def vector_search(repositories: Sequence[Repository]) -> list[float]:
    from apps.tools.vector_search import VECTOR_SEARCH

    def ask(repository: Repository, question: Question) -> Pieces:
        arguments = {"query": question.text, "repository": repository.name, "limit": 20}
        rows = VECTOR_SEARCH.run(arguments, is_compact=True)["results"]
        return [(repository.path_of(row["relPath"]), _json(row)) for row in rows]

    return _shares(repositories, ask)


def grep_and_read(
    repositories: Sequence[Repository], checkouts: Path, ripgrep: Path
) -> list[float]:
    found = grep.system(ripgrep, checkouts)

    def ask(repository: Repository, question: Question) -> Pieces:
        folder = folder_of(repository, checkouts)
        words = [word.lower() for word in grep.keywords(question.text)]
        paths = [place.path for place in found(repository, question)][:MAX_FILES]
        prefix = f"{repository.index_root}/" if repository.index_root else ""
        return [(path, _window(folder / path.removeprefix(prefix), words)) for path in paths]

    return _shares(repositories, ask)


def _window(file: Path, words: Sequence[str]) -> str:
    """The WINDOW lines of a file around the line that has most of the words."""
    lines = file.read_text("utf-8", "replace").split("\n")
    best = max(range(len(lines)), key=lambda at: sum(word in lines[at].lower() for word in words))
    first = max(0, best - WINDOW // 2)
    return "\n".join([str(file), *lines[first : first + WINDOW]])


def _shares(
    repositories: Sequence[Repository], ask: Callable[[Repository, Question], Pieces]
) -> list[float]:
    answers = [
        (question, ask(repository, question)) for repository, question in _questions(repositories)
    ]
    tokens = iter(token_counts([text for _, pieces in answers for _, text in pieces]))
    sized = [
        (question, [(path, next(tokens)) for path, _ in pieces]) for question, pieces in answers
    ]
    shares = []
    for budget in BUDGETS:
        covered: list[bool] = []
        for question, pieces in sized:
            covered += _covered(question, _within(budget, pieces))
        shares.append(sum(covered) / len(covered))
    return shares


def _within(budget: int, pieces: Sequence[tuple[str, int]]) -> set[str]:
    """The paths of the first pieces (path, tokens) that have no more tokens than that."""
    paths: set[str] = set()
    for path, count in pieces:
        budget -= count
        if budget < 0:
            break
        paths.add(path)
    return paths


def _questions(repositories: Sequence[Repository]) -> list[tuple[Repository, Question]]:
    return [(each, question) for each in repositories for question in each.questions]


def _covered(question: Question, paths: set[str]) -> list[bool]:
    """For each file that answers, whether it is among the paths."""
    return [
        any(path == target.path or path.endswith(f"/{target.path}") for path in paths)
        for target in question.targets
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
