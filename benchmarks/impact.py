"""Measures which of the tests that fail Impact names, for mutations of three repositories.

    .venv/bin/python -m benchmarks.impact --checkouts DIR --python VENV/bin/python --folder STATE

DIR has a folder for each of REPOSITORIES, with its code in `src` and its tests in `tests`. VENV has
pytest, pytest-cov, pytest-timeout and what the suites need. A mutation changes one expression in a
function. The tests that run its line are run; a mutation of which none fails is not counted. Then
Impact is asked about the patch. The baseline names the tests in files that import the file of the
mutation. STATE holds what the suites said, so that they run once. The tables are written to
benchmarks/results/impact.md.
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
from pathlib import Path
from typing import Any

from benchmarks import product

REPOSITORIES = ("click", "flask", "marshmallow")
MUTATIONS = 67  # of each repository
SEED, SUITE_SECONDS = 40, 600
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
    """A change of one line. failed: tests, as `path::Class.name`"""

    path: str
    line: int  # 1-based
    old: str
    new: str
    failed: list[str]


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
                if (new := _mutated(node, text)) and _is_on_one_line(node):
                    line, start, end = node.lineno, node.col_offset, node.end_col_offset
                    old = lines[line - 1]
                    if old.isascii():
                        yield line, old, old[:start] + new + old[end:]


def _is_on_one_line(node: Any) -> bool:
    return bool(node.lineno == node.end_lineno)


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
            yield Mutation(path, line, old, new, failed)


def run(folder: Path, python: str, tests: Sequence[str]) -> list[str]:
    """The tests that fail; none if they cannot be collected, or do not end."""
    report = folder / ".report.json"
    report.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        suite(folder, python, f"@{listed.name}", "--timeout=20", "-p", "no:cacheprovider")
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
    old = text.split("\n")
    new = [*old[: mutation.line - 1], mutation.new, *old[mutation.line :]]
    names = (f"a/{mutation.path}", f"b/{mutation.path}")
    lines = difflib.unified_diff([f"{one}\n" for one in old], [f"{one}\n" for one in new], *names)
    return f"diff --git {' '.join(names)}\n{''.join(lines)}"


def named(rows: Sequence[Mapping[str, Any]], every: Sequence[str]) -> set[str]:
    """The tests that some rows name: one, all of a class, or all of a file."""
    tests: set[str] = set()
    for row in rows:
        name = row.get("symbol", "")
        place = f"{row['relPath']}::"
        tests.update(
            test
            for test in every
            if test.startswith(place)
            and (not name or test == place + name or test.startswith(f"{place}{name}."))
        )
    return tests


def measure(name: str, folder: Path, found: Sequence[Mutation], every: Sequence[str]) -> list[Any]:
    """For each mutation: (failed, named, proven, named by the baseline, seconds)."""
    from apps.lookup.impact import ImpactQuery, impact
    from apps.lookup.symbols import ImportsQuery, SymbolQuery, find_imports
    from apps.retrieval.paging import finished

    measured = []
    for mutation in found:
        text = (folder / mutation.path).read_text()
        form = {"repository": name, "patch": patch_of(mutation, text), "limit": 1_000}
        began = time.monotonic()
        answer = finished(impact(ImpactQuery.parse(form)))
        seconds = time.monotonic() - began
        rows = list(answer["results"])
        while "nextCursor" in answer:
            query = ImpactQuery.parse(form | {"cursor": answer["nextCursor"]})
            answer = finished(impact(query))
            rows += answer["results"]
        tests = [row for row in rows if row["kind"] == "test"]
        proven = [row for row in tests if row["certainty"] == "proven"]
        imports = ImportsQuery(SymbolQuery(mutation.path, (name,), 200), "importers")
        files = {edge.place.path for edge in find_imports(imports).results}
        baseline = {test for test in every if test.partition("::")[0] in files}
        failed = {plain(test) for test in mutation.failed}
        measured.append((failed, named(tests, every), named(proven, every), baseline, seconds))
    return measured


def row_of(label: str, pairs: Sequence[tuple[set[str], set[str]]]) -> str:
    """Recall and precision: the mean over the mutations, and of all tests together."""
    both = [len(failed & named_) for failed, named_ in pairs]
    recall = [hit / len(failed) for hit, (failed, _) in zip(both, pairs, strict=True)]
    precision = [
        hit / len(named_) if named_ else 0.0 for hit, (_, named_) in zip(both, pairs, strict=True)
    ]
    total = sum(both) / sum(len(failed) for failed, _ in pairs)
    size = statistics.median(len(named_) for _, named_ in pairs)
    mean = f"{statistics.mean(recall):.3f} | {total:.3f} | {statistics.mean(precision):.3f}"
    return f"| {label} | {mean} | {size:.0f} |"


def table(measured: Mapping[str, list[Any]]) -> Iterator[str]:
    yield "| tests named | recall | of all failures | precision | tests, median |"
    yield "| --- | --- | --- | --- | --- |"
    groups = {**measured, "all": [row for rows in measured.values() for row in rows]}
    for group, rows in groups.items():
        for number, label in ((1, "Impact"), (2, "Impact, proven"), (3, "files that import it")):
            yield row_of(f"{group}: {label}", [(row[0], row[number]) for row in rows])


def collected(folder: Path, python: str) -> list[str]:
    """All tests of a repository."""
    suite(folder, python, "--collect-only", "tests")
    return sorted(set(map(plain, json.loads((folder / ".tests.json").read_text()))))


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
    for name in options.names:
        stored = folder / f"{name}.json"
        if not stored.is_file():
            copy = folder / f"suite-{name}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(options.checkouts / name, copy)
            found = [asdict(one) for one in mutations(copy, options.python)]
            every = collected(copy, options.python)
            stored.write_text(json.dumps({"mutations": found, "tests": every}))
    with tempfile.TemporaryDirectory(prefix="codeinfo-impact-") as data:
        checkouts = options.checkouts.absolute()
        product.set_up(Path(data), [checkouts])
        measured = {}
        for name in options.names:
            said = json.loads((folder / f"{name}.json").read_text())
            product.ingest(checkouts / name, name)
            mutated = [Mutation(**one) for one in said["mutations"]]
            measured[name] = measure(name, checkouts / name, mutated, said["tests"])
    rows = [row for of_one in measured.values() for row in of_one]
    seconds = sorted(row[4] for row in rows)
    text = "\n".join(table(measured))
    RESULTS.write_text(
        f"# Impact beside the tests that fail\n\n{options.date}: {len(rows)} mutations of "
        f"{', '.join(measured)} of which tests fail (`python -m benchmarks.impact`). Recall: "
        "the share of the failing\ntests that are named, as the mean over the mutations, and of "
        f"all failures together.\n\n{text}\n\nSeconds of an answer: median "
        f"{statistics.median(seconds):.2f}, p95 {seconds[int(len(seconds) * 0.95)]:.2f}.\n"
    )
    print(RESULTS.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
