"""The scores of a system for each question, and their means."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.retrieval import metric
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository

Ask = Callable[[Repository, Question], Sequence[Place]]
"""A system: returns the results for a question about a repository, best first."""


@dataclass(frozen=True)
class Score:
    """The result of one system for one question."""

    repository: str
    language: str
    question: str
    category: str
    file: float  # NDCG@10 by file
    chunk: float  # NDCG@10 by chunk
    ms: float  # latency
    chars: int  # characters to read, as in `metric.cost`
    covered: bool  # all relevant files were returned


def judged(ask: Ask, repositories: Iterable[Repository]) -> list[Score]:
    """The scores of a system for every question, in the order of the set."""
    return [
        _scored(ask, repository, question)
        for repository in repositories
        for question in repository.questions
    ]


def _scored(ask: Ask, repository: Repository, question: Question) -> Score:
    started = time.perf_counter()
    places = ask(repository, question)
    taken = (time.perf_counter() - started) * 1000
    chars, covered = metric.cost(places, question.targets)
    return Score(
        repository=repository.name,
        language=repository.language,
        question=question.text,
        category=question.category,
        file=metric.by_file(places, question.targets),
        chunk=metric.by_chunk(places, question.targets),
        ms=taken,
        chars=chars,
        covered=covered,
    )


def mean(scores: Iterable[Score], measure: str = "file") -> float:
    return fmean([getattr(score, measure) for score in scores])


def means_by(scores: Iterable[Score], field: str, measure: str = "file") -> dict[str, float]:
    """The mean of each language, category or repository, in the order of their names."""
    groups: dict[str, list[float]] = {}
    for score in scores:
        groups.setdefault(getattr(score, field), []).append(getattr(score, measure))
    return {name: fmean(groups[name]) for name in sorted(groups)}


def mean_of_languages(scores: Sequence[Score], measure: str = "file") -> float:
    """The macro mean over languages of the macro mean over repositories."""
    languages = {score.repository: score.language for score in scores}
    groups: dict[str, list[float]] = {}
    for name, value in means_by(scores, "repository", measure).items():
        groups.setdefault(languages[name], []).append(value)
    return fmean(fmean(values) for values in groups.values())


def save(scores: Sequence[Score], file: Path) -> None:
    file.write_text(json.dumps([asdict(score) for score in scores], indent=0))


def saved(file: Path) -> list[Score]:
    return [Score(**entry) for entry in json.loads(file.read_text())]
