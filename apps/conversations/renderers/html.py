"""Exchanges as HTML: complete, and as incremental fragments while one runs.

Every element that may change has an id of turn id and part index, which the page, a reload and the
fragments of the websocket share.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from apps.browse.map_page import MAX_CITED, Cited, map_url
from apps.conversations.answers.citations import Citation
from apps.conversations.answers.exchange import Exchange, timing_line, usage_line
from apps.conversations.answers.markdown import FENCES, AnswerRenderer, open_block
from apps.conversations.answers.passages import passages_of
from apps.conversations.answers.steps import step_of
from apps.conversations.parts import Part

THINKING_AFTER_SECONDS = 1.0
GROWTH = 20  # so rendering an open block costs at most about this many times its length
MAX_MAPS = 3  # links to maps of repositories that an answer cites
SENTENCE_END = re.compile(r"[.!?](?=\s)|\n\n")


def grouped(parts: Sequence[Part]) -> list[list[int]]:
    """Indexes of the parts by section: neighbouring steps in one section, each text in its own.

    Blank texts are left out and separate nothing.
    """
    sections: list[list[int]] = []
    for index, part in enumerate(parts):
        if part["type"] == "text":
            if part["text"].strip():
                sections.append([index])
        elif sections and parts[sections[-1][-1]]["type"] != "text":
            sections[-1].append(index)
        else:
            sections.append([index])
    return sections


def exchange(view: Exchange) -> str:
    """The `<article>` of an exchange that is not running."""
    renderer = AnswerRenderer()
    texts = answer_texts(view.parts, renderer)
    sections = [_section(view, indexes, texts, renderer) for indexes in grouped(view.parts)]
    return _article(view, sections, renderer)


def cited(view: Exchange) -> list[Citation]:
    """The citations of an exchange, in order."""
    renderer = AnswerRenderer()
    answer_texts(view.parts, renderer)
    return renderer.citations.used


def answer_texts(parts: Sequence[Part], renderer: AnswerRenderer) -> dict[int, str]:
    """HTML by index of the text parts. Rendered in order: a text cites only earlier results."""
    texts: dict[int, str] = {}
    for index, part in enumerate(parts):
        if part["type"] == "text":
            texts[index] = renderer.text(part["text"])
        elif part["type"] == "tool":
            renderer.citations.learn(passages_of(part["result"]))
    return texts


def _section(
    view: Exchange, indexes: list[int], texts: dict[int, str], renderer: AnswerRenderer
) -> dict[str, Any]:
    name = f"{view.id}-{indexes[0]}"
    if view.parts[indexes[0]]["type"] == "text":
        return {"name": name, "html": mark_safe(texts[indexes[0]])}  # sanitised there
    steps = [
        step_of(index, view.parts[index], renderer.citations, running=False) for index in indexes
    ]
    return {"name": name, "steps": steps}


def _article(
    view: Exchange, sections: list[dict[str, Any]], renderer: AnswerRenderer, **extra: Any
) -> str:
    context = {
        "turn": view,
        "sections": sections,
        "sources": renderer.citations.sources(),
        "source_counts": renderer.citations.counts,
        "maps": _maps(renderer.citations.used),
        "cited": len(renderer.citations.used),
        "usage": usage_line(view.usage),
        "timing": timing_line(view.timing),
        **extra,
    }
    return render_to_string("conversations/_turn.html", context)


def _maps(used: Sequence[Citation]) -> list[tuple[str, str]]:
    """The repositories that an answer cites, and the maps of the cited places."""
    cited: dict[str, list[Cited]] = {}
    for one in used:
        places = cited.setdefault(one.passage.repo, [])
        places.append(Cited(one.passage.path, f"{one.start}-{one.end}"))
    return [(repo, map_url(repo, cited=places[:MAX_CITED])) for repo, places in cited.items()][
        :MAX_MAPS
    ]


def spoken(text: str) -> str:
    """Markdown as plain text for screen readers: without code blocks and markup."""
    lines, inside = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith(FENCES):
            inside = not inside
        elif not inside:
            lines.append(line)
    return " ".join(re.sub(r"[`*#|_]+", "", "\n".join(lines)).split())


def append(html: str, target: str) -> str:
    """A fragment appended to the element with id `target`."""
    return f'<div hx-swap-oob="beforeend:#{target}">{html}</div>'


def replacing(article: str) -> str:
    """A fragment that replaces the `<article>` of the same id."""
    return article.lstrip().replace("<article ", '<article hx-swap-oob="true" ', 1)


def inner(html: str, target: str) -> str:
    """A fragment that replaces the content of the element with id `target`."""
    return f'<div hx-swap-oob="innerHTML:#{target}">{html}</div>'


def removed(target: str) -> str:
    """A fragment that removes the element with id `target`."""
    return f'<div id="{target}" hx-swap-oob="delete"></div>'


@dataclass
class _OpenText:
    """The rendered state of a text part.

    done: characters in finished blocks.
    kind: kind of the open block.
    shown: text of the open block on the page.
    html: the open block as HTML; "" for code, whose text only grows.
    """

    done: int = 0
    kind: str = "text"
    shown: str = ""
    html: str = ""


@dataclass
class LiveExchange:
    """A running exchange for one reader: `whole` once, then `changes` as often as there are any.

    `view` is the same run each time, its parts only ever growing (unless `is_outdated`).
    """

    renderer: AnswerRenderer = field(default_factory=AnswerRenderer)
    _open: dict[int, _OpenText] = field(default_factory=dict)
    _steps: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    _sections: int = 0
    _thinking: bool = False
    _visible: int = 0
    _visible_at: float = field(default_factory=time.monotonic)
    _announced: int = 0
    _warned: int = 0

    def whole(self, view: Exchange) -> str:
        """The article as it stands, to be continued by `changes`."""
        sections = [self._new_section(view, indexes) for indexes in grouped(view.parts)]
        self._sections = len(sections)
        self._announced = len(view.answer_text)
        self._visible = self._announced
        self._warned = len(view.warnings)
        return _article(view, sections, self.renderer, thinking=False)

    def changes(self, view: Exchange) -> list[str]:
        """The fragments that update the page to `view`."""
        fragments: list[str] = []
        groups = grouped(view.parts)
        for number, indexes in enumerate(groups):
            if number < self._sections:
                fragments += self._grown(view, indexes)
            else:
                html = render_to_string(
                    "conversations/_section.html",
                    {"turn": view, "section": self._new_section(view, indexes)},
                )
                fragments.append(append(html, f"body-{view.id}"))
        self._sections = len(groups)
        return fragments + self._warnings(view) + self._placeholder(view) + self._speech(view)

    def is_outdated(self, view: Exchange) -> bool:
        """Whether text on the page has turned out to be reasoning: `changes` cannot show that."""
        return any(view.parts[index]["type"] != "text" for index in self._open)

    def thinking_due(self) -> float | None:
        """Seconds until the placeholder may appear; None while it is shown."""
        if self._thinking:
            return None
        return max(0.0, self._visible_at + THINKING_AFTER_SECONDS - time.monotonic())

    # --- new sections ---

    def _new_section(self, view: Exchange, indexes: list[int]) -> dict[str, Any]:
        first, name = indexes[0], f"{view.id}-{indexes[0]}"
        if view.parts[first]["type"] != "text":
            return {"name": name, "steps": [self._step(view, index) for index in indexes]}
        html = self._advance(view, first)
        return {"name": name, "html": mark_safe(html), "open": self._open[first]}

    def _step(self, view: Exchange, index: int) -> Any:
        part = view.parts[index]
        if part["type"] == "tool" and part["stage"] != "started":
            self.renderer.citations.learn(passages_of(part["result"]))
        self._steps[index] = _version(view, index)
        running = index == len(view.parts) - 1
        return step_of(index, part, self.renderer.citations, running=running)

    def _advance(self, view: Exchange, index: int) -> str:
        """HTML of the blocks that finished since the last call; updates the open block."""
        text = self._open.setdefault(index, _OpenText())
        ended = index < len(view.parts) - 1
        source = view.parts[index]["text"]
        html, rest = self.renderer.finished(source[text.done :], ended=ended)
        before, text.done = text.done, len(source) - len(rest)
        kind, shown = open_block(rest)
        # A long block is rendered again only when it has grown by a part of its length.
        is_due = len(shown) - len(text.shown) > len(text.shown) / GROWTH
        if kind == "code" or (before, text.kind) != (text.done, kind) or is_due:
            text.kind, text.shown = kind, shown
            text.html = self.renderer.open(rest) if kind == "text" and rest.strip() else ""
        return html

    # --- sections on the page ---

    def _grown(self, view: Exchange, indexes: list[int]) -> list[str]:
        if view.parts[indexes[0]]["type"] == "text":
            return self._grown_text(view, indexes[0])
        fragments: list[str] = []
        for index in indexes:
            fragments += self._grown_step(view, index, f"sec-{view.id}-{indexes[0]}")
        return fragments

    def _grown_step(self, view: Exchange, index: int, section_id: str) -> list[str]:
        before, now = self._steps.get(index), _version(view, index)
        if before == now:
            return []
        if before and (more := _more_thought(before, now, view.parts[index])):
            self._steps[index] = now
            return [append(escape(more), f"thought-{view.id}-{index}")]
        context = {"turn": view, "step": self._step(view, index), "oob": before is not None}
        html = render_to_string("conversations/_step.html", context)
        return [html] if before is not None else [append(html, section_id)]

    def _grown_text(self, view: Exchange, index: int) -> list[str]:
        before = replace(self._open[index])
        html = self._advance(view, index)
        now = self._open[index]
        if now == before:
            return []
        name = f"{view.id}-{index}"
        is_same = (now.done, now.kind) == (before.done, before.kind)
        if is_same and now.kind == "code" and before.shown:
            return [append(escape(now.shown[len(before.shown) :]), f"open-text-{name}")]
        block = render_to_string("conversations/_open.html", {"open": now, "name": name})
        finished = [append(html, f"blocks-{name}")] if html else []
        return [*finished, inner(block, f"open-{name}")]

    # --- warnings, placeholder, live region ---

    def _warnings(self, view: Exchange) -> list[str]:
        fresh = view.warnings[self._warned :]
        self._warned = len(view.warnings)
        chips = [render_to_string("conversations/_warning.html", {"text": text}) for text in fresh]
        return [append("".join(chips), f"warnings-{view.id}")] if chips else []

    def _placeholder(self, view: Exchange) -> list[str]:
        """ "Thinking…" after THINKING_AFTER_SECONDS without text and without a running tool."""
        visible = len(view.answer_text)
        if visible != self._visible:
            self._visible, self._visible_at = visible, time.monotonic()
        at_work = any(p["type"] == "tool" and p["stage"] == "started" for p in view.parts)
        quiet = time.monotonic() - self._visible_at >= THINKING_AFTER_SECONDS
        thinking = quiet and not at_work
        if thinking == self._thinking:
            return []
        self._thinking = thinking
        html = render_to_string("conversations/_thinking.html", {"thinking": thinking})
        return [inner(html, f"thinking-{view.id}")]

    def _speech(self, view: Exchange) -> list[str]:
        """The sentences that finished since the last call, for the live region."""
        fresh = view.answer_text[self._announced :]
        ends = [match.end() for match in SENTENCE_END.finditer(fresh)]
        if not ends:
            return []
        self._announced += ends[-1]
        return [inner(escape(spoken(fresh[: ends[-1]])), "say")]


def _version(view: Exchange, index: int) -> tuple[Any, ...]:
    """The mutable state of a step: a tool's stage, or whether a thought runs, and its length."""
    part = view.parts[index]
    if part["type"] == "tool":
        return (part["stage"],)
    return (part.get("seconds") is None and index == len(view.parts) - 1, len(part["text"]))


def _more_thought(before: tuple[Any, ...], now: tuple[Any, ...], part: Part) -> str:
    """The new text of a running thought."""
    if part["type"] != "reasoning" or not now[0]:
        return ""
    return str(part["text"][before[1] :])
