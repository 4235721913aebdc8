"""A model's Markdown as safe HTML: no raw HTML, no images, sanitised last.

An answer is rendered block by block, so that a block that is finished is rendered once while the
answer still streams; a whole answer is its blocks one after the other, so that live and reloaded
pages show the same.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from importlib import import_module
from itertools import takewhile
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

import re2
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from apps.browse import graph
from apps.browse.highlight import Blocks, block_language, numbered
from apps.browse.sanitise import is_safe_link, sanitise
from apps.conversations.answers import diagrams
from apps.conversations.answers.citations import Citation, Citations
from apps.conversations.answers.numbering import number
from apps.core.values.surrogates import escaped
from apps.lookup.citations.references import ANY_REFERENCE, SPACE

# What is longer is shown as plain text, from there to the end of the answer: a long block is parsed
# again at each update while it grows, and what is dense with marks takes 40 µs a character.
MAX_BLOCK_CHARS = 32_000
MAX_MARKDOWN_CHARS = 100_000
# Rows that are shorter than the head of their table are filled up: 32 kB would make 65,536 cells.
_tables: Any = import_module("markdown_it.rules_block.table")
_tables.MAX_AUTOCOMPLETED_CELLS = 1_000
_parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
_parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
# Where blocks end does not depend on what stands inside their lines, and the ends are looked for at
# every update of an answer that streams.
_outline = MarkdownIt("commonmark", {"html": False})
_outline.enable("table").disable(["html_block", "inline", "text_join"])
_LONE_RETURN = re.compile(r"\r(?!\n)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# A block that is a reference and, at most, a remark in brackets: what stands above quoted code.
_HEADING = re2.compile(
    rf"[#*_{SPACE}]*`*{ANY_REFERENCE}`*[*_:{SPACE}]*(?P<note>\([^()\n]{{1,60}}\))?[*_:.{SPACE}]*"
)
BLANKS = " \t\r\n"  # what Markdown takes for nothing, unlike str.strip
_MARKS = re2.compile(r"[ \t]*(?:[-=*_+#>~`|:]+|[0-9]{1,9}[.)]?)?[ \t]*")
FENCES = ("```", "~~~")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
for _each in (_parser, _outline):
    _each.validateLink = is_safe_link  # type: ignore[method-assign]


# What gives the HTML of a part of an answer.
Draw = Callable[[], str]


@dataclass
class AnswerRenderer:
    """Renders the text of one answer, in order; numbers its citations as they come."""

    citations: Citations = field(default_factory=Citations)
    env: dict[str, Any] = field(default_factory=dict)
    _last_reference: Citation | None = None
    _note: str = ""
    _chars: int = 0
    _is_plain: bool = False
    _blocks: Blocks = field(default_factory=Blocks)

    def text(self, source: str) -> str:
        """All of a finished text part."""
        if "]:" in source:  # link definitions may stand below their use
            _outline.parse(source[:MAX_MARKDOWN_CHARS], self.env)
        return self.finished(source, ended=True)[0]

    def finished(self, source: str, *, ended: bool) -> tuple[str, str]:
        """The HTML of the finished blocks of a text, and the rest, which may still change.

        After a block or an answer that is too long all that follows is plain text, and is finished
        once the text has ended.
        """
        html: list[str] = []
        looking = True
        while looking and not self._is_plain:
            window = source[: _blank_start(source) + MAX_BLOCK_CHARS]
            is_all = len(window) == len(source)
            blocks, _ = split(window, ended=ended and is_all)
            taken = list(takewhile(self._takes, blocks))
            html += self.blocks(taken)
            source = source[sum(map(len, taken)) :]
            self._is_plain = len(taken) < len(blocks) or not (taken or is_all)
            looking = not is_all
        if not ended:
            return "".join(html), source
        self._chars += len(source)
        if self._is_plain and source.strip(BLANKS):
            html.append(render_to_string("conversations/_plain.html", {"text": source.rstrip()}))
        return "".join(html), ""

    def open(self, rest: str) -> str:
        """The HTML of a block that still grows. It changes nothing here: the block that it becomes
        is numbered once it is finished, in the same order."""
        if self._is_plain or self._chars + len(rest) > MAX_MARKDOWN_CHARS:
            return render_to_string("conversations/_plain.html", {"text": rest.rstrip()})
        preview = replace(
            self,
            citations=self.citations.copy(),
            env=dict(self.env),
            _blocks=replace(self._blocks),
        )
        return preview.finished(_settled(rest), ended=True)[0]

    def _takes(self, block: str) -> bool:
        """Count a block, unless it begins beyond what is rendered of an answer."""
        if self._chars + _blank_start(block) > MAX_MARKDOWN_CHARS:
            return False
        self._chars += len(block)
        return True

    def blocks(self, sources: list[str]) -> list[str]:
        """One piece of safe HTML per finished block."""
        drawn: list[Draw] = []
        for source, following in zip(sources, [*sources[1:], ""], strict=False):
            draw = self._block(source)
            # A reference that stands alone above code is the code's heading, not a line of its own.
            heading = _heading(source) if following.lstrip().startswith(FENCES) else None
            if heading and self._last_reference:
                self._note = (heading["note"] or "").strip("()")
            else:
                drawn.append(draw)
        # Not before all are parsed: their code is highlighted together.
        return [sanitise(draw()) for draw in drawn]

    def _block(self, source: str) -> Draw:
        tokens = _parser.parse(source, self.env)
        number(tokens, self.citations)
        drawn: list[Draw] = []
        position = 0
        while position < len(tokens):
            end = _end_of_block(tokens, position)
            drawn.append(self._one(tokens[position:end]))
            position = end
        return lambda: "".join(draw() for draw in drawn)

    def _one(self, tokens: list[Token]) -> Draw:
        first, before, note = tokens[0], self._last_reference, self._note
        self._last_reference, self._note = None, ""
        if first.type in ("fence", "code_block"):
            calls = self._calls(first)
            return (lambda: calls) if calls else self._fence(first, before, note)
        self._last_reference = _trailing_citation(tokens)
        for token in tokens:
            if token.type in ("fence", "code_block"):
                token.meta["draw"] = self._fence(token)
        return lambda: str(_parser.renderer.render(tokens, _parser.options, self.env))

    def _fence(self, token: Token, citation: Citation | None = None, note: str = "") -> Draw:
        language = block_language(token.info)
        if language == "mermaid":
            return partial(diagram, token.content)
        text = token.content.removesuffix("\n")
        return code(text, language, citation, note, self._blocks)

    def _calls(self, token: Token) -> str:
        """The picture of a fence of calls; "" for any other."""
        arcs = graph.read(token.content) if token.info.strip() == graph.FENCE else []
        return graph.picture(arcs, self.citations.link) if arcs else ""


def _blank_start(text: str) -> int:
    """How many blank characters a text begins with."""
    return len(text) - len(text.lstrip(BLANKS))


def _heading(source: str) -> Any:
    """The match of a block that may stand above quoted code, or None."""
    return _HEADING.fullmatch(escaped(source))


def plain(source: str) -> SafeString:
    """A text alone as sanitised HTML: a thought, or an answer whose citations are not shown."""
    return mark_safe(AnswerRenderer().text(source))


def split(source: str, *, ended: bool) -> tuple[list[str], str]:
    """The finished top-level blocks of a text, and the rest, which may still change.

    More text can only change the last block, so the others are finished; all are once the text has
    ended. A block that is nothing but a reference waits for the next one: code after it is shown
    under it.
    """
    # Lines as the parser counts them. One that is not over may yet become anything.
    source = _LONE_RETURN.sub(" ", source)
    whole = source if ended else source[: source.rfind("\n") + 1]
    lines = _LINE.findall(whole)
    tops = [t for t in _outline.parse(whole, {}) if t.level == 0 and t.map and t.nesting >= 0]
    if not tops:
        return [], "" if ended else source
    edges = [0, *(t.map[0] for t in tops[1:] if t.map), len(lines)]
    texts = ["".join(lines[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    finished = len(texts) if ended or _is_closed(tops[-1], lines) else len(texts) - 1
    if finished and not ended and _heading(texts[finished - 1]):
        finished -= 1
    blocks = texts[:finished]
    return blocks, source[sum(map(len, blocks)) :]


def _is_closed(token: Token, lines: list[str]) -> bool:
    """Whether the last block cannot go on: a fence that was closed, a paragraph before a gap."""
    first, end = token.map or (0, 0)
    if token.type == "fence":
        return end - first > 1 and _closes(lines[end - 1], token.markup)
    return token.type in ("paragraph_open", "heading_open") and not lines[-1].strip(BLANKS)


def _closes(line: str, markup: str) -> bool:
    """Whether a line is the end of a fence that began with `markup`."""
    inside = line.strip(BLANKS)
    indent = len(line) - len(line.lstrip(" "))
    return indent <= 3 and len(inside) >= len(markup) and set(inside) == {markup[0]}


def open_block(rest: str) -> tuple[str, str]:
    """How the block that still grows is shown: ("text" | "code", what to show of it).

    A fence shows nothing before its first line is over, then only its code.
    """
    fence = _FENCE.search(rest) if len(rest) <= MAX_BLOCK_CHARS else None
    if fence is None:
        return "text", rest
    before = rest[: fence.start()]
    if before.strip() and not _heading(before):
        return "text", rest
    return "code", rest[fence.end() :].partition("\n")[2]


def _settled(rest: str) -> str:
    """An open block without what may yet mean something else: a last line of marks alone (`-` is
    the beginning of a list, or makes a heading of the line above), and marks that are not closed.
    """
    rest = _LONE_RETURN.sub(" ", rest)
    before, _, last = rest.rpartition("\n")
    if _MARKS.fullmatch(last):
        return before
    closed = last
    for mark in ("`", "**"):
        if closed.count(mark) % 2:
            closed = closed.removesuffix(mark) if closed.endswith(mark) else closed + mark
    return f"{before}\n{closed}" if before else closed


def _end_of_block(tokens: list[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        depth += tokens[index].nesting
        if depth == 0:
            return index + 1
    return len(tokens)


def _trailing_citation(tokens: list[Token]) -> Citation | None:
    """The citation that a block ends with, so that code below can be shown under it."""
    inline = [t for t in tokens if t.type == "inline"]
    if not inline or tokens[0].type not in ("paragraph_open", "heading_open"):
        return None
    cites = [c for c in inline[-1].children or [] if c.type == "citation"]
    return cites[-1].meta["citation"] if len(cites) == 1 else None


def code(text: str, language: str, citation: Citation | None, note: str, blocks: Blocks) -> Draw:
    """A block of code; where it quotes a passage, under its path and with its line numbers."""
    first = _first_line(text, citation) if citation else None
    shown = dedent(text) if first else text
    path = citation.passage.path if citation else language
    lines = blocks.later(shown, language=language, path=path)

    def draw() -> str:
        block = {"is_plain": first is None, "lines": numbered(lines(), first)}
        context = {"citation": citation, "language": language, "note": note, **block}
        return render_to_string("conversations/_code.html", context)

    return draw


def _first_line(text: str, citation: Citation) -> int | None:
    """The file's number of the first quoted line, if the passage holds the quoted lines."""
    passage, first = citation.passage, citation.passage.start
    if first is None:
        return None
    code_lines = [line.strip() for line in text.split("\n")]
    passage_lines = [line.strip() for line in passage.text.split("\n")]
    offsets = [
        offset
        for offset in range(len(passage_lines) - len(code_lines) + 1)
        if passage_lines[offset : offset + len(code_lines)] == code_lines
    ]
    if not offsets:
        return None
    return first + min(offsets, key=lambda offset: abs(first + offset - citation.start))


def diagram(source: str) -> str:
    """A mermaid diagram: its image if it was drawn already, else its source to be drawn."""
    outcome = diagrams.drawn(source)
    return render_to_string(
        "conversations/_diagram.html",
        {
            "source": source,
            "drawn": outcome if isinstance(outcome, diagrams.Diagram) else None,
            "reason": outcome.reason if isinstance(outcome, diagrams.NotDrawn) else "",
            "pending": outcome is None,
        },
    )


def _render_citation(tokens: list[Token], index: int, options: Any, env: Any) -> str:
    meta = tokens[index].meta
    return render_to_string("conversations/_cite.html", meta).strip()


def _render_code_token(tokens: list[Token], index: int, options: Any, env: Any) -> str:
    return str(tokens[index].meta["draw"]())


def _render_link(tokens: list[Token], index: int, options: Any, env: Any) -> str:
    href = escape(str(tokens[index].attrs.get("href", "")))
    away = "" if href.startswith("/") else ' target="_blank" rel="noopener noreferrer"'
    return f'<a href="{href}"{away}>'


def _render_link_end(tokens: list[Token], index: int, options: Any, env: Any) -> str:
    """The end of a link and, where it leads away from this server, where to."""
    start = next(i for i in range(index, -1, -1) if tokens[i].type == "link_open")
    href = str(tokens[start].attrs.get("href", ""))
    shown = "".join(token.content for token in tokens[start:index])
    # A link without a text of its own is its address, and shows the host already.
    if href.startswith("/") or (shown == href and "@" not in href):
        return "</a>"
    return f'</a> <span class="link-host">({escape(destination(href))})</span>'


def destination(href: str) -> str:
    """The host, and the port if one is named, that an address leads to; the whole of one without.

    Names are in the ASCII form that the parser gives them, so that no letter looks like another.
    """
    try:
        host = urlsplit(href).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    return host or href


_RULES = {
    "citation": _render_citation,
    "fence": _render_code_token,
    "code_block": _render_code_token,
    "link_open": _render_link,
    "link_close": _render_link_end,
}
_parser.renderer.rules.update(_RULES)  # type: ignore[attr-defined]
