"""Extract pairs of a question and the code that answers it from the archive of a package.

A documented definition gives two pairs: one with its own lines ("definition"), and one with a
window of the size of an indexed chunk that begins with it ("chunk"). The comment of a file is
paired with its beginning ("file"). The comment of the question is removed from the code.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from apps.code.chunking import MAX_CHARS, decode, lines_of
from apps.code.languages import language_of
from apps.code.syntax.keyword_lines import keyword_lines
from training.archives import files
from training.comments import Documented, about, documented
from training.exclusions import is_excluded
from training.licences import DebianCopyright, is_permissive
from training.manifest import Package
from training.questions import question, uncommented

PairKind = Literal["definition", "chunk", "file"]

LANGUAGES = frozenset(
    "python javascript jsx typescript tsx java kotlin go rust ruby php c cpp csharp swift scala lua"  # noqa: SIM905
    " haskell elixir bash objc dart zig erlang perl groovy".split()
)
# Characters of source to read from one package. Variety matters more than complete packages.
MOST_SOURCE = {"pypi": 1_500_000, "npm": 1_200_000, "deb": 1_200_000, "deb-src": 5_000_000}
MOST_LINE_LENGTH = 200  # on average; files with longer lines are minified
MOST_BODY = 4_000
MOST_NAMES = 8

_DOC_MARK = re.compile(rb'"""|\'\'\'|/\*\*|^[ \t]*(?:///?|#|--+|%+) \w|@doc', re.MULTILINE)
_INSTALLED = re.compile(
    r"^(package|usr/share/(gocode/src|cargo/registry|php|lua/[\d.]+|nodejs|perl5)"
    r"|usr/lib/ruby/(vendor_ruby|gems/[\d.]+/gems)|usr/include(/x86_64-linux-gnu)?|usr/(lib|share))/"
)


class Pair(NamedTuple):
    """A question and the fields of the code that answers it, as in EmbeddingText."""

    kind: PairKind
    language: str
    question: str
    path: str
    symbol: str
    signature: str
    body: str


def pairs_of(package: Package, archive: Path, rules: str = "") -> list[Pair]:
    """The pairs of one package; deterministic. `rules` is the copyright file of a Debian source
    package; files under licences that are not permissive are left out."""
    licences = DebianCopyright(rules) if rules else None
    return [
        pair
        for path, content in _sources(package, archive, licences)
        for pair in pairs_in(path, content)
    ]


def pairs_in(path: str, content: bytes) -> Iterator[Pair]:
    """The pairs of one file."""
    language = language_of(path, content[:200]).name
    lines = lines_of(decode(content))
    for found in documented(language, lines):
        query = question(_plain(language, found.doc))
        body = _body(path, lines, found) if query else ""
        if body:
            yield Pair("definition", language, query, path, found.symbol, found.signature, body)
            yield _window(language, query, path, lines, found)
    top = about(language, lines)
    query = question(_plain(language, top[2])) if top else ""
    if top and query:
        body, names = _cut(lines, top[1], top)
        yield Pair("file", language, query, path, names, "", body)


def _sources(
    package: Package, archive: Path, licences: DebianCopyright | None
) -> Iterator[tuple[str, bytes]]:
    """Documented source files of the package, chosen by chance up to MOST_SOURCE."""
    contents = {}
    for name, content in files(archive, _may_be_source):
        path = name.partition("/")[2] if package.kind == "deb-src" else name
        allowed = licences is None or is_permissive(licences.of(path))
        if path and allowed and _is_documented(content):
            contents[path] = content
    paths = sorted(contents)
    random.Random(package.sha256).shuffle(paths)
    room = MOST_SOURCE[package.kind]
    for path in paths:
        if room <= 0:
            break
        room -= len(contents[path])
        yield _shown(package, path), contents[path]


def _may_be_source(path: str) -> bool:
    named = "." in path.rpartition("/")[2] and language_of(path, b"").name in LANGUAGES
    return named and not is_excluded(path)


def _is_documented(content: bytes) -> bool:
    return (
        len(content) < (content.count(b"\n") + 1) * MOST_LINE_LENGTH
        and _DOC_MARK.search(content) is not None
    )


def _shown(package: Package, path: str) -> str:
    """The path as it would stand in a repository, without the folders of an installation."""
    return _INSTALLED.sub("", path) if package.kind in ("npm", "deb") else path


def _plain(language: str, doc: str) -> str:
    return doc if language in ("python", "elixir") else uncommented(doc.split("\n"))


def _body(path: str, lines: list[str], found: Documented) -> str:
    """The definition's lines without its comment; "" where too little is left to be found by."""
    if found.heads:
        return "\n".join(found.heads)[:MOST_BODY]
    rows = range(found.first, found.end)
    code = [lines[r] for r in rows if not found.doc_first <= r < found.doc_end and lines[r].strip()]
    declared = path.endswith((".d.ts", ".d.mts", ".d.cts")) and len(found.signature) > 30
    return "\n".join(code)[:MOST_BODY] if len(code) >= 3 or declared else ""


def _window(language: str, query: str, path: str, lines: list[str], found: Documented) -> Pair:
    doc = found.doc_first, found.doc_end, found.doc
    body, names = _cut(lines, min(found.first, found.doc_first), doc)
    return Pair("chunk", language, query, path, f"{found.symbol} {names}", found.signature, body)


def _cut(lines: list[str], row: int, doc: tuple[int, int, str]) -> tuple[str, str]:
    """Lines from `row` on that fill a chunk, less the comment, and the names they declare."""
    code: list[str] = []
    room = MAX_CHARS
    while row < len(lines) and room > 0:
        if not doc[0] <= row < doc[1]:
            code.append(lines[row])
            room -= len(lines[row]) + 1
        row += 1
    declared = [declaration.name for declaration in keyword_lines(code, "")]
    return "\n".join(code)[:MOST_BODY], " ".join(declared[:MOST_NAMES])
