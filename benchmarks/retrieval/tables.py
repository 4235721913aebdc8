"""Scores as the tables of docs/benchmarks.md."""

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.retrieval import metric
from benchmarks.retrieval.questions import CATEGORIES
from benchmarks.retrieval.scores import Score, mean, mean_of_languages, means_by

Systems = Mapping[str, Sequence[Score]]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def short(value: float) -> str:
    """Three places and no leading nought: .867"""
    return f"{value:.3f}".replace("0.", ".", 1)


def overall(systems: Systems) -> str:
    head = ["system", "NDCG@10 by file", "by chunk", "languages' mean", *CATEGORIES, "p50 ms"]
    rows = []
    for name, scores in systems.items():
        categories = means_by(scores, "category")
        rows.append(
            [
                name,
                short(mean(scores)),
                short(mean(scores, "chunk")),
                short(mean_of_languages(scores)),
                *(short(categories[c]) if c in categories else "–" for c in CATEGORIES),
                f"{median(score.ms for score in scores):.1f}",
            ]
        )
    return table(head, rows)


def by(field: str, systems: Systems) -> str:
    """A row for each language or repository, a column for each system."""
    columns = [means_by(scores, field) for scores in systems.values()]
    rows = [[name, *(short(column[name]) for column in columns)] for name in columns[0]]
    return table([field, *systems], rows)


def differences(ours: str, systems: Systems) -> str:
    """How much better one system is than each other, question by question, ± standard error."""
    rows = []
    for name, scores in systems.items():
        if name != ours:
            pairs = [[s.file for s in system] for system in (systems[ours], scores)]
            by_how_much, error = metric.difference(*pairs)
            rows.append([name, f"{by_how_much:+.3f}", f"{error:.3f}"])
    return table([f"{ours} less …", "difference", "± standard error"], rows)


def worst(scores: Sequence[Score], count: int) -> str:
    """The questions that are answered worst."""
    rows = [
        [score.repository, score.category, short(score.file), score.question]
        for score in sorted(scores, key=lambda score: score.file)[:count]
    ]
    return table(["repository", "category", "by file", "question"], rows)


def changes(ours: Sequence[Score], before: Sequence[Score]) -> str:
    """The questions that are answered otherwise than before, the worst change first."""
    changed = [
        (now.file - then.file, now)
        for now, then in zip(ours, before, strict=True)
        if abs(now.file - then.file) > 1e-9
    ]
    rows = [
        [score.repository, score.category, f"{by:+.3f}", short(score.file), score.question]
        for by, score in sorted(changed, key=lambda pair: pair[0])
    ]
    return table(["repository", "category", "change", "now", "question"], rows)
