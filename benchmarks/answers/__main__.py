"""Which lines come first for messages, identifiers, definitions, settings, and absent words.

    python -m benchmarks.answers --checkouts DIR --fetch BASE [--data DIR] [--misses FILE]

`made.py` makes the questions from the checkouts of `repositories.json`. Each is asked of
VectorSearch with its repository. The rows of the answer by shape come before the passages, as a
person sees them. Prints how often the first result, one of five and one of twenty has a line that
answers, also of BM25, ripgrep (whole files) and semble if that is said; how often an absent word is
told (`missingWords`, or all results weak), and told of a question that has an answer; and how often
Context returns the first passage that answers as a whole, beside VectorSearch with as many rows as
fit into the tokens (o200k) and at most twenty. The time of Context is compared with a VectorSearch
of twenty rows: thread time, the best of four calls, the sum over the questions.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from benchmarks import product
from benchmarks.agents import token_counts
from benchmarks.answers import made
from benchmarks.retrieval import direct, metric, questions
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.others import bm25, grep, semble
from benchmarks.retrieval.questions import Question, Repository, folder_of

SET = Path(__file__).with_name("repositories.json")
DEPTHS = (1, 5, 20)
BUDGETS = (500, 1_000, 2_000, 4_000)
TIMED_CALLS = 4
CONTEXT_EVERY = 6  # questions

Row = dict[str, Any]
Asked = tuple[Repository, Question]


class Answer(NamedTuple):
    rank: int  # of the first row that answers, from 1; 0 if none does
    ms: float
    is_weak: bool  # all rows are
    missing: Sequence[str]  # words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    parser.add_argument("--only", default="", help="names of repositories, comma separated")
    parser.add_argument("--misses", type=Path, help="write the questions not answered first")
    parser.add_argument("--bm25", action="store_true", help="also BM25 over the same chunks")
    parser.add_argument("--others", type=Path, help="a Python that has requirements-bench.txt")
    parser.add_argument("--context", action="store_true", help="also Context")
    options = parser.parse_args()
    checkouts = options.checkouts.resolve()
    chosen = questions.load(SET, [name for name in options.only.split(",") if name])
    for repository in chosen if options.fetch else ():
        questions.fetch(repository, checkouts, options.fetch.rstrip("/"))
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        product.set_up((options.data or Path(temporary) / "data").resolve(), [checkouts])
        direct.ingest_all(chosen, checkouts, again=False)
        direct.load_all(chosen)
        repositories = [made.with_questions(repository, checkouts) for repository in chosen]
        asked = [(each, question) for each in repositories for question in each.questions]
        answers = [_answer(*pair) for pair in asked]
        _print_ranks("codeinfo", asked, [answer.rank for answer in answers])
        if options.bm25:
            ask = bm25.system()
            _print_ranks("BM25", asked, [_rank(ask(*pair), pair[1]) for pair in asked])
        if options.others:
            ripgrep = options.others.with_name("rg")
            ask = grep.system(ripgrep, checkouts)
            _print_ranks(
                "ripgrep by keyword", asked, [_rank(ask(*pair), pair[1]) for pair in asked]
            )
            for name, vectors in (("semble's words", False), ("semble with our vectors", True)):
                ask = semble.system(options.others, checkouts, vectors=vectors)
                _print_ranks(name, asked, [_rank(ask(*pair), pair[1]) for pair in asked])
        _print_told(asked, answers, checkouts)
        print(f"\np50 of a call: {median(answer.ms for answer in answers):.2f} ms")
        if options.context:
            _print_context(asked)
        if options.misses:
            options.misses.write_text("\n".join(_misses(asked, answers)) + "\n")


def _answer(repository: Repository, question: Question) -> Answer:
    from apps.tools.vector_search import VECTOR_SEARCH

    started = perf_counter()
    found = VECTOR_SEARCH.run(
        {"query": question.text, "repository": repository.name, "limit": max(DEPTHS)}
    )
    ms = (perf_counter() - started) * 1000
    places = [
        Place(repository.path_of(row["relPath"]), row["startLine"], row["endLine"])
        for row in [*found.get("answer", {}).get("rows", ()), *found["results"]]
    ]
    is_weak = all(row.get("weak") for row in found["results"])
    return Answer(_rank(places, question), ms, is_weak, found.get("missingWords", ()))


def _rank(places: Sequence[Place], question: Question) -> int:
    ranks = (
        rank
        for rank, place in enumerate(places, 1)
        if any(metric.answers(place, target) for target in question.targets)
    )
    return next(ranks, 0)


# --- tables ---------------------------------------------------------------------------------------


def _print_ranks(name: str, asked: Sequence[Asked], ranks: Sequence[int]) -> None:
    print(f"\n| {name} | questions | first | in five | in twenty |")
    print("| --- | --- | --- | --- | --- |")
    for kind in made.KINDS[:-1]:
        of_kind = [rank for (_, q), rank in zip(asked, ranks, strict=True) if q.category == kind]
        shares = [_share([0 < rank <= depth for rank in of_kind]) for depth in DEPTHS]
        print(f"| {kind} | {len(of_kind)} | {' | '.join(shares)} |")


def _share(values: Sequence[bool]) -> str:
    """The share that is true, ± one standard error."""
    share = sum(values) / max(1, len(values))
    error = math.sqrt(share * (1 - share) / max(1, len(values)))
    return f"{share:.3f} ± {error:.3f}"


def _print_told(asked: Sequence[Asked], answers: Sequence[Answer], checkouts: Path) -> None:
    known = {
        repository.name: made.words_in(made.read(folder_of(repository, checkouts)))
        for repository in {repository.name: repository for repository, _ in asked}.values()
    }
    kinds: dict[str, list[tuple[bool, bool]]] = {}
    for (repository, question), answer in zip(asked, answers, strict=True):
        words = {word.lower() for word in answer.missing}
        is_false = bool(words & known[repository.name])
        is_told = bool(words) if question.category == "negative" else is_false
        kinds.setdefault(question.category, []).append((is_told, answer.is_weak))
    print("\n| | questions | a word is told as missing | all results are weak |")
    print("| --- | --- | --- | --- |")
    for kind, pairs in kinds.items():
        what = "absent word" if kind == "negative" else f"{kind}, told falsely"
        told, weak = zip(*pairs, strict=True)
        print(f"| {what} | {len(pairs)} | {_share(told)} | {_share(weak)} |")


def _misses(asked: Sequence[Asked], answers: Sequence[Answer]) -> Iterator[str]:
    for (repository, question), answer in zip(asked, answers, strict=True):
        is_miss = not answer.is_weak if question.category == "negative" else answer.rank != 1
        if is_miss:
            places = [f"{target.path}:{target.start_line}" for target in question.targets]
            facts = [repository.name, question.category, str(answer.rank), question.text]
            yield "\t".join([*facts, " ".join(places), " ".join(answer.missing)])


# --- Context --------------------------------------------------------------------------------------


def _print_context(asked: Sequence[Asked]) -> None:
    """A passage that answers is the first row of VectorSearch that does. It is whole in Context if
    its rows have all of its lines."""
    from apps.tools.context.tool import CONTEXT
    from apps.tools.vector_search import VECTOR_SEARCH

    pairs = [pair for pair in asked if pair[1].targets][::CONTEXT_EVERY]
    rows, search_seconds = _timed(VECTOR_SEARCH.run, pairs, "query", limit=max(DEPTHS))
    best = [_answering(found["results"], *pair) for found, pair in zip(rows, pairs, strict=True)]
    print("\n| whole within tokens | codeinfo's Context | VectorSearch | tokens used | time |")
    print("| --- | --- | --- | --- | --- |")
    for budget in BUDGETS:
        fits = _rows_within(budget, [found["results"] for found in rows])
        context, seconds = _timed(CONTEXT.run, pairs, "question", max_tokens=budget)
        usable = [
            index
            for index, row in enumerate(best)
            if row and _tokens([row])[0] <= budget - 100  # a longer one is counted apart
        ]
        whole = [_has_all(_shown(context[index]), best[index] or {}) for index in usable]
        listed = [best[index] in rows[index]["results"][: fits[index]] for index in usable]
        used = median(answer["tokens"] for answer in context) / budget
        print(
            f"| {budget:,} ({len(usable)} of {len(pairs)}) | {_share(whole)} | {_share(listed)} "
            f"| {used:.2f} | {seconds / search_seconds:.2f} × |"
        )


def _timed(
    run: Callable[[Row], Row], pairs: Sequence[Asked], key: str, **more: Any
) -> tuple[list[Row], float]:
    """The answers, and the sum of the best thread times in seconds."""
    answers, total = [], 0.0
    for repository, question in pairs:
        arguments = {key: question.text, "repository": repository.name, **more}
        taken = []
        for _ in range(TIMED_CALLS):
            started = thread_time()
            answer = run(arguments)
            taken.append(thread_time() - started)
        answers.append(answer)
        total += min(taken)
    return answers, total


def _answering(rows: Sequence[Row], repository: Repository, question: Question) -> Row | None:
    for row in rows:
        place = Place(repository.path_of(row["relPath"]), row["startLine"], row["endLine"])
        if any(metric.answers(place, target) for target in question.targets):
            return row
    return None


def _tokens(rows: Sequence[Row]) -> list[int]:
    return token_counts([row["chunk"] for row in rows])


def _rows_within(budget: int, answers: Sequence[Sequence[Row]]) -> list[int]:
    """How many of the first rows of each answer fit into the tokens, in the compact form."""
    from apps.tools.vector_search import compact_matches

    texts = [
        json.dumps(compact_matches({"results": [row]}), ensure_ascii=False)
        for rows in answers
        for row in rows
    ]
    counts = iter(token_counts(texts))
    fitting = []
    for rows in answers:
        room, number = budget, 0
        for count in [next(counts) for _ in rows]:
            room -= count
            number += room >= 0
        fitting.append(number)
    return fitting


def _shown(answer: Row) -> Sequence[Row]:
    """The rows of an answer; it does not repeat those of the answer by shape."""
    return [*answer["results"], *answer.get("answer", {}).get("rows", ())]


def _has_all(rows: Sequence[Row], wanted: Row) -> bool:
    lines = {
        line
        for row in rows
        if (row["repo"], row["relPath"]) == (wanted["repo"], wanted["relPath"])
        for line in range(row["startLine"], row["endLine"] + 1)
    }
    return lines.issuperset(range(wanted["startLine"], wanted["endLine"] + 1))


if __name__ == "__main__":
    main()
