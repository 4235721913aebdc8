"""Exchanges as HTML that stands alone, for links to a copy of a conversation and for files.

It has questions, answers, and the lines that answers cite. It has no thoughts, tool calls, other
results, names of folders of the machine, or controls. A link of a citation leads to its lines below
the answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from apps.browse.highlight import highlight_texts, numbered
from apps.browse.sanitise import standalone
from apps.conversations.answers.citations import Citation
from apps.conversations.answers.exchange import Exchange
from apps.conversations.answers.markdown import AnswerRenderer
from apps.conversations.parts import mappings
from apps.conversations.renderers.html import answer_texts
from apps.core.http.static_files import static_files
from apps.core.values.slices import grouped
from apps.index.paths import map_path
from apps.index.queries import published_roots
from apps.retrieval.repositories import repo_id

PAGE = "conversations/shared.html"
SHEET = "css/shared.css"  # as the page names it
# Characters of answers whose cited lines are highlighted together: a fifth of a second's work.
CHARS_AT_ONCE = 100_000
# What stands before a folder if it is the end of an address or of a longer path, and before one
# that is whole all the same: an option (-I/srv/shop), and a written end of a line.
LONGER, GLUED = re.compile(r"[A-Za-z0-9.~}]\Z"), re.compile(r"(?:-[A-Za-z]|\\[nrt])\Z")


def copied(title: str, views: Sequence[Exchange]) -> tuple[str, Iterator[str]]:
    """The title of a conversation, and the HTML of each exchange that has ended."""
    folders = _folders(views)
    return _whole(folders, _without(folders, title)), _sections(views, folders)


def page(title: str, html: str) -> str:
    """A file with its stylesheet, which requests nothing."""
    file = static_files.get(SHEET)
    sheet = mark_safe(file.body.decode()) if file else ""
    return render_to_string(PAGE, {"title": title, "html": mark_safe(html), "sheet": sheet})


def _sections(views: Sequence[Exchange], folders: Mapping[str, str]) -> Iterator[str]:
    ended = (
        _context(number, view, folders) for number, view in enumerate(views, 1) if not view.running
    )
    for contexts in grouped(ended, _chars, CHARS_AT_ONCE):
        cited = [citation for context in contexts for citation in context["used"]]
        blocks = iter(
            highlight_texts([(text, c.passage.path, c.passage.language) for c, text in cited])
        )
        for context in contexts:
            pairs = [(c, _lines(c, text, next(blocks))) for c, text in context["used"]]
            yield render_to_string("conversations/_shared.html", context | {"cited": pairs})


def _context(number: int, view: Exchange, folders: Mapping[str, str]) -> dict[str, Any]:
    renderer = AnswerRenderer()
    parts = [
        part | {"text": _without(folders, part["text"])} if part["type"] == "text" else part
        for part in view.parts
    ]
    html = "".join(answer_texts(parts, renderer).values())
    used = renderer.citations.used
    return {
        "number": number,
        "question": _without(folders, view.question),
        "answer": mark_safe(standalone(html, {c.url: f"#c{number}-{c.number}" for c in used})),
        "status": view.status,
        "used": list(zip(used, renderer.citations.texts(), strict=True)),
    }


def _chars(context: Mapping[str, Any]) -> int:
    return len(context["answer"]) + sum(len(text) for _, text in context["used"])


def _lines(citation: Citation, text: str, lines: Sequence[SafeString]) -> str:
    """The cited lines with their numbers; "" without their text."""
    return numbered(lines, citation.start) if text else ""


def _folders(views: Sequence[Exchange]) -> dict[str, str]:
    """Folders of the machine → the repository there, longest first: those of today, and those that
    results of tools name."""
    folders: dict[str, str] = {}
    for root in published_roots():
        mapped = map_path(root)
        folders |= dict.fromkeys((mapped.container_path, mapped.host_path), repo_id(root))
    for part in (part for view in views for part in view.parts if part["type"] == "tool"):
        for row in mappings(part["result"]):
            folders |= _of_row(row)
    return {folder: folders[folder] for folder in sorted(folders, key=len, reverse=True)}


def _of_row(row: Mapping[str, Any]) -> dict[str, str]:
    """The folders that a row names, which is a file or a repository."""
    repository, path = row.get("repo") or row.get("id"), row.get("relPath") or ""
    folders: dict[str, str] = {}
    for place in (row.get("hostPath"), row.get("containerPath")):
        if isinstance(place, str) and isinstance(path, str) and isinstance(repository, str):
            folder = place.removesuffix(f"/{path}")
            if len(folder) > 1 and (folder != place or not path):
                folders[folder] = repository
    return folders


def _without(folders: Mapping[str, str], text: str) -> str:
    """A text with the names of repositories in place of their folders."""

    def named(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - 2) : match.start()]
        is_longer = LONGER.search(before) and not GLUED.search(before)
        return match[0] if is_longer else folders[match[0]]

    return re.sub("|".join(map(re.escape, folders)), named, text) if folders else text


def _whole(folders: Mapping[str, str], title: str) -> str:
    """A title without the beginning of a folder at its end: titles are cut."""
    for folder in folders:
        for length in range(min(len(folder), len(title)), 0, -1):
            begun = folder[:length]
            if begun.count("/") > 1 and title.endswith(begun):
                return f"{title.removesuffix(begun)}…"
    return title
