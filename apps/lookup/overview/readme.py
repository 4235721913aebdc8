"""The first sentence of a README."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import re2

from apps.index.lexical import is_unspaced
from apps.lookup.relations.types import MAX_LINE, Relation
from apps.lookup.symbols.project import RootProject

# Lines that are read, characters of a line, and paragraphs of which one may begin with the name.
MAX_LINES, MAX_CHARS, MAX_PARAGRAPHS = 200, 1_000, 8
MAX_READMES = 5  # files
_IS = r"\b(?:is|are|provides|lets|helps|allows|makes)\b"
# Titles, lists, tables, pictures, badges, HTML, directives, rules below titles, fences.
_NO_TEXT = re2.compile(
    r"^(?:[#|<>!:+=~`*_-]|\[!|\.\. |\d+\.|\[[^\]]+\]:|(?:\[[^\]]+\]\([^)]+\)[\s[:punct:]]*)+$)"
)
_LINKS = re2.compile(r"!?\[([^\]\[]{1,200})\](?:\([^)]{0,500}\)|\[[^\]]{0,100}\])?")
_TAGS = re2.compile(r"<[^<>]{1,300}>|[`*]+|\b_|_\b")
_SENTENCE = re2.compile(r"^(.{20,}?[.!?])(?:\s|$)|^(.{10,}?。)")


def first_sentence(project: RootProject, name: str) -> Relation | None:
    """The sentence of the README at the top that says what the repository is: the first one that
    begins with its name, else the first one. None without a README."""
    says_what = re2.compile(
        rf"(?i)^(?:the )?{re2.escape(name)}(?:\.js)?(?:[^\w'’].{{0,60}}?)?{_IS}"
    )
    paths = [
        path
        for path in sorted(project.tree.folders.get("", ()), key=lambda path: (len(path), path))
        if PurePosixPath(path).stem.lower() == "readme"
    ]
    for path, lines in project.lines_in_time(paths[:MAX_READMES]):
        found = [(number, _sentence(text)) for number, text in _paragraphs(lines[:MAX_LINES])]
        if found:
            says = [one for one in found[:MAX_PARAGRAPHS] if says_what.search(one[1])]
            number, text = (says or found)[0]
            return Relation("readme", project.place(path), number, text)
    return None


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The first line and the plain text of paragraphs."""
    texts: list[str] = []
    first, is_code = 0, False
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("```"):
            is_code = not is_code
        below = lines[number] if number < len(lines) else ""
        is_title = bool(below) and len(set(below.strip())) == 1 and below.strip()[0] in "=-~^"
        text = "" if is_code or is_title or line.startswith("    ") else _plain(line)
        if text:
            first, texts = first or number, [*texts, text]
            continue
        whole = " ".join(texts)
        if len(whole.split()) >= 4 or any(map(is_unspaced, whole.split())):
            yield first, whole
        first, texts = 0, []


def _plain(line: str) -> str:
    """The text of a line of prose; "" for any other line."""
    text = line[:MAX_CHARS].strip()
    if text.startswith(("*", "_", "`")) and not text.startswith(("* ", "***", "```")):
        text = text.lstrip("*_`")
    if not text or _NO_TEXT.match(text):
        return ""
    return str(_TAGS.sub("", _LINKS.sub(r"\1", text))).strip()


def _sentence(text: str) -> str:
    match = _SENTENCE.match(text)
    return (match[1] or match[2] if match else text)[:MAX_LINE]
