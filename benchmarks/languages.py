"""What codeinfo finds in files of each language, beside ctags: `python -m benchmarks.languages -h`.

    python -m benchmarks.languages --checkouts DIR [--fetch BASE] [--misses FILE]

At most FILES of a language are taken from each repository of `languages.json`. A file is parsed if
its grammar reads it but for a fifth, in time. Of the definitions that Universal Ctags finds, those
count as found of which a symbol has the name, at most two lines away. Kinds of ctags that are no
definitions for readers, such as locals, packages and properties, are left out.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import product
from benchmarks.retrieval import questions
from benchmarks.retrieval.questions import folder_of

if TYPE_CHECKING:
    from apps.code.values import ChunkedFile

Tag = tuple[str, int]  # name and line

SET = Path(__file__).with_name("languages.json")
FILES = 30
MAX_BYTES = 300_000
NEAR = 2  # lines
_KINDS = """
    annotation chapter class constructor entity enum enumeration exception fd function functor
    interface macro method mixin module object paragraph procedure protocol protocolRecord record
    resource rpc schema section service signature singletonMethod struct subprogram subroutine
    subsection subsubsection table task trait trigger type typedef union view
"""
KINDS = frozenset(_KINDS.split())
# Selectors are no definitions with names, and objects of data no definitions.
NOT_COMPARED = frozenset({"css", "json"})
# ctags names these itself.
_UNNAMED = re.compile(r"__anon|Anonymous(Function|Class)|<|\W*\Z")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--misses", type=Path, help="write the definitions that are not found")
    options = parser.parse_args()
    folders = []
    for repository in questions.load(SET):
        if options.fetch:
            questions.fetch(repository, options.checkouts, options.fetch.rstrip("/"))
        folders.append(folder_of(repository, options.checkouts))
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        product.set_up(Path(temporary), [options.checkouts])
        misses = _print_table(_files(folders))
    if options.misses:
        options.misses.write_text("".join(f"{miss}\n" for miss in misses))


def _files(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """The files of each language, by its name."""
    from apps.code.languages import known_type

    found: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        of_folder: dict[str, list[Path]] = defaultdict(list)
        for file in sorted(folder.rglob("*")):
            is_text = file.is_file() and 0 < file.stat().st_size <= MAX_BYTES
            if is_text and (kind := known_type(str(file.relative_to(folder)))):
                of_folder[kind.name].append(file)
        for language, files in of_folder.items():
            files.sort(key=lambda file: sha256(str(file.relative_to(folder)).encode()).digest())
            found[language] += files[:FILES]
    return found


def _print_table(files: Mapping[str, Sequence[Path]]) -> list[str]:
    from apps.index.parsing import Chunker

    misses: list[str] = []
    of_language: dict[str, Counter[str]] = defaultdict(Counter)
    with Chunker() as chunker:
        for paths in files.values():
            chunked = chunker.chunk_many([(str(path), path.read_bytes()) for path in paths])
            is_compared = chunked[0].language not in NOT_COMPARED
            tags = _ctags(paths) if is_compared else {}
            for file in chunked:
                lost = list(_lost(tags.get(file.path, ()), file))
                misses += [f"{file.language}\t{file.path}:{line}\t{name}" for name, line in lost]
                of_language[file.language].update(
                    files=1,
                    parsed=not file.problem,
                    symbols=len(file.symbols),
                    tags=len(tags.get(file.path, ())),
                    lost=len(lost),
                )
    print("| language | files | parsed | symbols | of ctags | found of these |")
    print("| --- | --- | --- | --- | --- | --- |")
    for language, row in of_language.items():
        found = f"{1 - row['lost'] / row['tags']:.3f}" if row["tags"] else ""
        parsed = f"{row['parsed'] / row['files']:.3f}"
        tags_ = f"{row['tags']:,}" if row["tags"] else ""
        cells = [language, f"{row['files']:,}", parsed, f"{row['symbols']:,}", tags_, found]
        print(f"| {' | '.join(cells)} |")
    return misses


def _ctags(paths: Sequence[Path]) -> dict[str, set[Tag]]:
    """Path → names and lines of its definitions."""
    command = ["ctags", "--output-format=json", "--fields=+nK", "-f", "-", "-L", "-"]
    printed = subprocess.run(
        command, input="\n".join(map(str, paths)).encode(), capture_output=True, check=True
    ).stdout
    found: dict[str, set[Tag]] = defaultdict(set)
    for line in printed.decode("utf-8", "replace").splitlines():
        tag: dict[str, Any] = json.loads(line)
        if tag.get("kind") in KINDS and not _UNNAMED.match(tag["name"]):
            found[tag["path"]].add((tag["name"], tag["line"]))
    return found


def _lost(tags: Iterable[Tag], file: "ChunkedFile") -> Iterator[Tag]:
    """The tags without a symbol. That of several clauses or with attributes has more lines."""
    lines: dict[str, list[range]] = defaultdict(list)
    for symbol in file.symbols:
        near = range(symbol.start_line - NEAR, symbol.end_line + NEAR + 1)
        # Of `TEST(suite, name) {`, ctags has the macro.
        macro = symbol.signature.partition("(")[0]
        names = {symbol.name, symbol.name.partition(" ")[0], symbol.path}
        for name in names | ({macro} if macro.isupper() else set()):
            lines[name].append(near)
    for name, line in tags:
        # `a:b:` is a method of Objective-C, `Dict k v` a type of Elm.
        first = re.split(r"[: <{]", name.rpartition("::")[2])[0]
        places = [*lines[name], *lines[first], *lines[first.rpartition(".")[2]]]
        if not any(line in place for place in places):
            yield name, line


if __name__ == "__main__":
    main()
