"""Measures which of the tests that fail Impact names, for mutations of three repositories.

    .venv/bin/python -m benchmarks.impact --checkouts DIR --python VENV/bin/python --folder STATE

DIR has a folder for each of REPOSITORIES, with its code in `src` and its tests in `tests`. VENV has
pytest, pytest-cov, pytest-timeout and what the suites need. A mutation changes one expression in a
function. The tests that run its line are run; a mutation of which none fails is not counted. Then
Impact is asked about the patch. The baseline names the tests in files that import the file of the
mutation. STATE holds what the suites said, so that they run once, and what was measured of each
repository: with names as arguments, only those are measured again. The first paragraph and the
table of benchmarks/results/impact.md are written; its other paragraphs stay.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import product

# The rules were tuned on marshmallow; the others were measured once.
TUNED = ("marshmallow",)
REPOSITORIES = ("flask", "wtforms", "marshmallow")
MUTATIONS = 75  # of each repository, at most
SEED, SUITE_SECONDS, ANSWER_SECONDS = 40, 120, 120.0
FIRST = (10, 25, 50)
KEYS = {
    "named": "Impact",
    "proven": "Impact, proven",
    "importing": "files that import it",
    "running": "those that run the line",
}
# Of a mutation: tests by the names of KEYS and of what failed, and seconds of processor time.
Row = dict[str, Any]
RESULTS = product.HERE / "benchmarks/results/impact.md"
SWAPS: Mapping[type[ast.AST], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True)
class Mutation:
    """A change of one line.

    failed, running: tests that fail, and those that run the line, as ids of pytest
    """

    path: str
    line: int  # 1-based
    old: str
    new: str
    failed: list[str]
    running: list[str]


# --- mutations ------------------------------------------------------------------------------------


def candidates(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, its text, and the text with another expression, for expressions in functions."""
    text = path.read_text()
    lines = text.split("\n")
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if not isinstance(node, ast.expr | ast.stmt):
                    continue
                if (new := _mutated(node, text)) and node.lineno == node.end_lineno:
                    line, start, end = node.lineno, node.col_offset, node.end_col_offset
                    old = lines[line - 1]
                    if old.isascii():
                        yield line, old, old[:start] + new + old[end:]


def _mutated(node: ast.AST, text: str) -> str:
    """The text of another expression, or statement; "" for none."""

    def source(one: ast.AST) -> str:
        return ast.get_source_segment(text, one) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        return f"{source(node.left)} {SWAPS[type(node.ops[0])]} {source(node.comparators[0])}"
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        word = "or" if isinstance(node.op, ast.And) else "and"
        return f"{source(node.values[0])} {word} {source(node.values[1])}"
    if isinstance(node, ast.Return) and node.value and source(node.value) != "None":
        return "return None"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value + 1)
    return ""


def mutations(folder: Path, python: str) -> Iterator[Mutation]:
    """Yield mutations of which tests fail."""
    covering = coverage(folder, python)
    every = [
        (file, *candidate)
        for file in sorted(folder.glob("src/**/*.py"))
        for candidate in candidates(file)
    ]
    random.Random(SEED).shuffle(every)
    count = 0
    for file, line, old, new in every:
        path = file.relative_to(folder).as_posix()
        tests = covering.get((path, line), [])
        if not tests or count == MUTATIONS:
            continue
        text = file.read_text()
        lines = text.split("\n")
        file.write_text("\n".join([*lines[: line - 1], new, *lines[line:]]))
        try:
            failed = run(folder, python, tests)
        finally:
            file.write_text(text)
        if failed:
            count += 1
            yield Mutation(path, line, old, new, failed, tests)


def run(folder: Path, python: str, tests: Sequence[str]) -> list[str]:
    """The tests that fail; none if they cannot be collected, or do not end."""
    report = folder / ".report.json"
    report.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        suite(folder, python, f"@{listed.name}", "--timeout=10", "-p", "no:cacheprovider")
    return json.loads(report.read_text()) if report.is_file() else []


PLUGIN = """
import json, pathlib
failed, errors = [], []
def pytest_runtest_logreport(report):
    if report.failed: failed.append(report.nodeid)
def pytest_collectreport(report):
    if report.failed: errors.append(report.nodeid)
def pytest_collection_finish(session):
    pathlib.Path(".tests.json").write_text(json.dumps([item.nodeid for item in session.items]))
def pytest_sessionfinish(session):
    names = sorted(set(failed)) if not errors else []
    pathlib.Path(".report.json").write_text(json.dumps(names))
"""


def suite(folder: Path, python: str, *arguments: str) -> None:
    """Run pytest; what failed is in `.report.json`."""
    (folder / "codeinfo_failed.py").write_text(PLUGIN)
    environment = {"PYTHONPATH": f"{folder}/src:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "pytest", "-q", "-p", "codeinfo_failed", *arguments]
    try:
        subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            timeout=SUITE_SECONDS,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        (folder / ".report.json").unlink(missing_ok=True)


def coverage(folder: Path, python: str) -> dict[tuple[str, int], list[str]]:
    """(path, line) → the tests that run it, without those that fail anyway."""
    data = folder / ".coverage"
    data.unlink(missing_ok=True)
    suite(
        folder,
        python,
        "tests",
        "--cov=src",
        "--cov-context=test",
        "--cov-config=/dev/null",
        "--cov-report=",
    )
    failing = set(json.loads((folder / ".report.json").read_text()))
    covering: dict[tuple[str, int], list[str]] = {}
    with sqlite3.connect(data) as connection:
        rows = connection.execute(
            "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
            "JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
        ).fetchall()
    for path, context, bits in rows:
        test = context.rpartition("|")[0]
        if not test or test in failing:
            continue
        name = Path(path).relative_to(folder).as_posix()
        for byte, value in enumerate(bits):
            for bit in range(8):
                if value >> bit & 1:
                    covering.setdefault((name, byte * 8 + bit), []).append(test)
    return {place: sorted(set(tests)) for place, tests in covering.items()}


# --- what Impact says -----------------------------------------------------------------------------


def plain(test: str) -> str:
    """`tests/test_a.py::TestA::test_b[1]` as `tests/test_a.py::TestA.test_b`."""
    path, _, name = test.partition("::")
    return f"{path}::{name.partition('[')[0].replace('::', '.')}"


def patch_of(mutation: Mutation, text: str) -> str:
    old = text.removesuffix("\n").split("\n")
    new = [*old[: mutation.line - 1], mutation.new, *old[mutation.line :]]
    names = (f"a/{mutation.path}", f"b/{mutation.path}")
    lines = difflib.unified_diff([f"{one}\n" for one in old], [f"{one}\n" for one in new], *names)
    return f"diff --git {' '.join(names)}\n{''.join(lines)}"


def named(rows: Sequence[Mapping[str, Any]], every: Sequence[str]) -> list[str]:
    """The tests that some rows name, in their order: one, all of a class, or all of a file."""
    tests: dict[str, None] = {}
    for row in rows:
        name = row.get("symbol", "")
        place = f"{row['relPath']}::"
        tests |= dict.fromkeys(
            test
            for test in every
            if test.startswith(place)
            and (not name or test == place + name or test.startswith(f"{place}{name}."))
        )
    return list(tests)


def measure(name: str, folder: Path, found: Sequence[Mutation], every: Sequence[str]) -> list[Row]:
    """Ask Impact about all mutations of a repository."""
    # What is named must not depend on what else the machine does.
    vars(import_module("apps.lookup.impact.impact"))["SECONDS"] = ANSWER_SECONDS
    measured: list[Row] = []
    for mutation in found:
        text = (folder / mutation.path).read_text()
        form = {"repository": name, "patch": patch_of(mutation, text), "limit": 1_000}
        began = time.process_time()
        tests = [row for row in answered(form) if row["kind"] == "test"]
        seconds = time.process_time() - began
        files = importing(name, mutation.path)
        measured.append(
            {
                "failed": [*dict.fromkeys(map(plain, mutation.failed))],
                "running": [*dict.fromkeys(map(plain, mutation.running))],
                "named": named(tests, every),
                "proven": named([row for row in tests if row["certainty"] == "proven"], every),
                "importing": [test for test in every if test.partition("::")[0] in files],
                "seconds": seconds,
            }
        )
        print(name, len(measured), flush=True)
    return measured


def answered(form: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of all pages of Impact."""
    from apps.lookup.impact import ImpactQuery, impact
    from apps.retrieval.paging import finished

    answer = finished(impact(ImpactQuery.parse(form)))
    rows = list(answer["results"])
    while "nextCursor" in answer:
        query = ImpactQuery.parse({**form, "cursor": answer["nextCursor"]})
        answer = finished(impact(query))
        rows += answer["results"]
    return rows


def importing(name: str, path: str) -> set[str]:
    """The files that import a file."""
    from apps.lookup.symbols import ImportsQuery, SymbolQuery, find_imports

    query = ImportsQuery(SymbolQuery(path, (name,), 200), "importers")
    return {edge.place.path for edge in find_imports(query).results}


def row_of(label: str, rows: Sequence[Row], key: str) -> str:
    """Recall of the first FIRST and of all tests, of all failures together, and precision.

    Precision leaves out answers that name no test.
    """
    of_first: dict[int, list[float]] = {count: [] for count in FIRST}
    recall, precision, hits = [], [], 0
    for row in rows:
        failed, tests = set(row["failed"]), row[key]
        for count, shares in of_first.items():
            most = min(count, len(failed))
            shares.append(len(failed.intersection(tests[:count])) / most)
        hit = len(failed.intersection(tests))
        hits += hit
        recall.append(hit / len(failed))
        precision += [hit / len(tests)] if tests else []
    first = [statistics.mean(shares) for shares in of_first.values()]
    total = hits / sum(len(row["failed"]) for row in rows)
    figures = [*first, statistics.mean(recall), total, statistics.mean(precision or [0.0])]
    size = statistics.median(len(row[key]) for row in rows)
    return f"| {label} | {' | '.join(f'{figure:.3f}' for figure in figures)} | {size:.0f} |"


def table(measured: Mapping[str, list[Row]]) -> Iterator[str]:
    first = " | ".join(f"first {count}" for count in FIRST)
    yield f"| tests named | {first} | recall | of all failures | precision | tests, median |"
    yield f"| {'--- | ' * (len(FIRST) + 5)}".rstrip()
    unseen = [row for name, rows in measured.items() if name not in TUNED for row in rows]
    for group, rows in {**measured, "not tuned on": unseen}.items():
        for key, label in KEYS.items():
            yield row_of(f"{group}: {label}", rows, key)


def collected(folder: Path, python: str) -> list[str]:
    """All tests of a repository."""
    suite(folder, python, "--collect-only", "tests")
    return sorted(set(map(plain, json.loads((folder / ".tests.json").read_text()))))


def generate(name: str, checkout: Path, folder: Path, python: str) -> None:
    """Store the mutations of a repository and what its suite says, unless they are stored."""
    stored = folder / f"{name}.json"
    if stored.is_file():
        return
    copy = folder / f"suite-{name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(checkout, copy)
    found = []
    for one in mutations(copy, python):
        found.append(asdict(one))
        print(name, len(found), f"{one.path}:{one.line}", flush=True)
    stored.write_text(json.dumps({"mutations": found, "tests": collected(copy, python)}))


def write(date: str, measured: Mapping[str, list[Row]]) -> None:
    rows = [row for of_one in measured.values() for row in of_one]
    seconds = sorted(row["seconds"] for row in rows)
    counts = ", ".join(f"{len(of_one)} of {name}" for name, of_one in measured.items())
    paragraphs = RESULTS.read_text().split("\n\n")
    (place,) = (at for at, text in enumerate(paragraphs) if text.startswith("|"))
    paragraphs[place] = "\n".join(table(measured))
    paragraphs[1] = (
        f"{date}: {len(rows)} mutations of which tests fail, {counts}. The rules were tuned on "
        f"{', '.join(TUNED)}.\nProcessor seconds of an answer: median "
        f"{statistics.median(seconds):.2f}, p95 {seconds[int(len(seconds) * 0.95)]:.2f}."
    )
    RESULTS.write_text("\n\n".join(paragraphs))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=REPOSITORIES, help="folders of DIR")
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--python", required=True, help="of an environment with the suites' needs")
    parser.add_argument("--folder", type=Path, required=True, help="what the suites said")
    parser.add_argument("--date", required=True, help="of the figures, as '28 November 2026'")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    checkouts = options.checkouts.absolute()
    for name in options.names:
        generate(name, checkouts / name, folder, options.python)
    with tempfile.TemporaryDirectory(prefix="codeinfo-impact-") as data:
        product.set_up(Path(data), [checkouts])
        for name in options.names:
            said = json.loads((folder / f"{name}.json").read_text())
            product.ingest(checkouts / name, name)
            mutated = [Mutation(**one) for one in said["mutations"]]
            rows = measure(name, checkouts / name, mutated, said["tests"])
            (folder / f"{name}.rows.json").write_text(json.dumps(rows))
    stored = {name: folder / f"{name}.rows.json" for name in REPOSITORIES}
    write(
        options.date,
        {name: json.loads(file.read_text()) for name, file in stored.items() if file.is_file()},
    )
    print(RESULTS.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
