"""Scores as the tables of benchmarks/results/retrieval.md."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from benchmarks.retrieval import metric
from benchmarks.retrieval.questions import CATEGORIES, Repository
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
            by_how_much, error = _difference(systems[ours], scores)
            rows.append([name, f"{by_how_much:+.3f}", f"{error:.3f}"])
    return table([f"{ours} less …", "difference", "± standard error"], rows)


def published(repositories: Sequence[Repository]) -> str:
    """The means over questions of what the set says that others reached: by chunk, in their own
    run, each with its own chunks. Nothing for a set that tells of no others."""
    names = {name for repository in repositories for name in repository.published}
    means = {name: _published(name, repositories) for name in names}
    rows = [[name, short(value)] for name, value in sorted(means.items(), key=lambda m: -m[1])]
    return table(["as published with the set", "NDCG@10 by chunk"], rows) if rows else ""


def _published(name: str, repositories: Sequence[Repository]) -> float:
    have = [repository for repository in repositories if name in repository.published]
    gained = sum(each.published[name] * len(each.questions) for each in have)
    return gained / sum(len(each.questions) for each in have)


def tokens(systems: Systems, base: str = "ripgrep by keyword") -> str:
    """Characters read until every file that answers has come up. Where one never does, all that
    came back was read, and then what the search by keyword takes."""
    if base not in systems:
        return ""
    greps = [score.chars for score in systems[base]]
    rows = []
    for name, scores in systems.items():
        missed = [
            0 if score.covered or name == base else chars
            for score, chars in zip(scores, greps, strict=True)
        ]
        costs = [score.chars + more for score, more in zip(scores, missed, strict=True)]
        rows.append(
            [
                name,
                f"{fmean(score.covered for score in scores):.0%}",
                f"{median(costs):,.0f}",
                f"{median(costs) / median(greps):.1%}",
                f"{fmean(costs):,.0f}",
                f"{fmean(costs) / fmean(greps):.1%}",
            ]
        )
    return table(["system", "all found", "median", "of grep's", "mean", "of grep's"], rows)


def latency(taken: Mapping[str, Sequence[float]], chunks: Mapping[str, int]) -> str:
    sizes = f"{len(chunks)} repositories, {sum(chunks.values()):,} chunks"
    rows = [
        [scope, f"{median(ms):.1f}", f"{metric.percentile(ms, 0.95):.1f}"]
        for scope, ms in taken.items()
    ]
    return table([f"through HTTP, of {sizes}", "p50 ms", "p95 ms"], rows)


def ablation(whole: Sequence[Score], without: Systems) -> str:
    """What changes without each signal."""
    rows = []
    for name, scores in without.items():
        change, error = _difference(scores, whole)
        means = [short(mean(scores, measure)) for measure in ("file", "chunk")]
        rows.append([name, *means, f"{change:+.4f}", f"{error:.4f}"])
    return table(["without", "by file", "by chunk", "change by file", "± standard error"], rows)


def _difference(these: Sequence[Score], those: Sequence[Score]) -> tuple[float, float]:
    return metric.difference([s.file for s in these], [s.file for s in those])


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
