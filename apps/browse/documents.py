"""Markdown of repositories as safe HTML: READMEs, documents, and cells of notebooks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from html import escape, unescape
from itertools import pairwise
from posixpath import basename, dirname, join, normpath
from typing import Any
from urllib.parse import unquote, urlsplit

import nh3
import re2
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments.token import STANDARD_TYPES

from apps.browse.highlight import Blocks, block_language
from apps.browse.lines import code_url
from apps.browse.sanitise import is_safe_link
from apps.index.models import Root
from apps.lookup.texts.table import file_table
from apps.retrieval.repositories import repo_id

ENDINGS = (".md", ".markdown", ".mdown", ".mkd")
# Longer Markdown is shown as text.
MAX_CHARS = 64_000
# Before each id of a document, so that none is one of the page.
PREFIX = "doc-"

TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "div", "span", "blockquote"),
    *("strong", "em", "b", "i", "s", "del", "sub", "sup", "kbd", "code", "pre", "a", "img"),
    *("ul", "ol", "li", "dl", "dt", "dd", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    # In place of nh3's own, which has `lang`: a value that is no language is worse than none.
    "*": {"title"},
    "a": {"href", "title", "id", "name"},
    "img": {"src", "alt"},
    "ol": {"start"},
    **dict.fromkeys(("p", "div", "th", "td"), {"align", "id"}),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), {"align", "id"}),
}
# The class of highlighted code, and those of its tokens.
CODE, CLASSES = "hl", set(STANDARD_TYPES.values()) - {""}
# In what nh3 writes, values are quoted, and quotes in them are escaped.
_LINK_OR_IMAGE = re2.compile(r'<a(?: [a-z]+="[^"]*")*>|</a>|<img((?: [a-z]+="[^"]*")*)>')
_ATTRIBUTE = re2.compile(r' ([a-z]+)="([^"]*)"')

# The URL to which a written one leads; None if it is no link.
Links = Callable[[str], str | None]


def slug(title: str) -> str:
    """The id of a heading, as GitHub makes it: lower case, without punctuation."""
    kept = "".join(c for c in title.strip().lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _name_headings(state: StateCore) -> None:
    """Give headings their ids; from the second with a title on, with a number."""
    counts: Counter[str] = Counter()
    for heading, title in pairwise(state.tokens):
        if heading.type == "heading_open":
            texts = (p.content for p in title.children or () if p.type in ("text", "code_inline"))
            name = slug("".join(texts))
            heading.attrSet("id", f"{name}-{counts[name]}" if counts[name] else name)
            counts[name] += 1


def _fence(tokens: Sequence[Token], index: int, options: Any, env: dict[str, Any]) -> str:
    """A block of code, highlighted if it is one of the first."""
    text = tokens[index].content.removesuffix("\n")
    language = block_language(tokens[index].info)
    blocks: Blocks = env.setdefault("blocks", Blocks())
    html = "\n".join(blocks.later(text, language=language, path=language)())
    return f'<pre class="{CODE}"><code>{html}\n</code></pre>\n'


_parser = MarkdownIt("commonmark", {"html": True})
_parser.enable(["table", "strikethrough"]).core.ruler.push("ids of headings", _name_headings)
_parser.renderer.rules["fence"] = _fence  # type: ignore[attr-defined]
# What is no link is decided below, where it remains as text.
_parser.validateLink = lambda url: True  # type: ignore[method-assign]


def is_markdown(path: str) -> bool:
    return path.lower().endswith(ENDINGS)


def can_render(path: str, lines: Sequence[str]) -> bool:
    """Whether a file is Markdown that is not too long."""
    return is_markdown(path) and sum(map(len, lines)) + len(lines) <= MAX_CHARS


def rendered(text: str, links: Links) -> SafeString:
    """Markdown as safe HTML. Images become their texts, with links to them."""
    if len(text) > MAX_CHARS:
        return mark_safe(f'<pre tabindex="0">{escape(text)}</pre>')
    clean = nh3.clean(
        _parser.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=lambda tag, name, value: _attribute(name, value, links),
        # Long lines are scrolled, also with the keyboard.
        set_tag_attribute_values={"pre": {"tabindex": "0"}},
        allowed_classes={"pre": {CODE}, "span": CLASSES},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener nofollow",
    )
    return mark_safe(_without_images(clean))


def _attribute(name: str, value: str, links: Links) -> str | None:
    if name in ("href", "src"):
        return links(value)
    return f"{PREFIX}{value}" if name in ("id", "name") else value


def _without_images(html: str) -> str:
    is_inside = False  # of a link, which cannot have another one inside

    def replaced(match: "re2._Match[str]") -> str:
        nonlocal is_inside
        if not match[0].startswith("<img"):
            is_inside = match[0] != "</a>"
            return str(match[0])
        values = dict(_ATTRIBUTE.findall(match[1]))
        url = values.get("src", "")
        text = escape(unescape(values.get("alt", "").strip() or basename(url) or "Image"))
        if is_inside or not url:
            return f"<span>{text}</span>"
        return f'<a href="{url}" rel="noopener nofollow">{text}</a>'

    return str(_LINK_OR_IMAGE.sub(replaced, html))


class DocumentLinks:
    """The links of a file: relative ones lead to ingested files and folders in the code browser."""

    def __init__(self, root: Root, path: str) -> None:
        self._root = root
        self._folder = dirname(path)

    @cached_property
    def _paths(self) -> list[str]:
        return sorted(file.path for file in file_table(self._root).files)

    def __call__(self, url: str) -> str | None:
        if url.startswith("#"):
            return f"#{PREFIX}{unquote(url[1:])}"
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        if parts.scheme or parts.netloc:
            return url if is_safe_link(url) else None
        # A path that begins with a slash begins at the top of the repository.
        path = normpath(join("/", self._folder, unquote(parts.path))).lstrip("/")
        if not self._has(path):
            return None
        anchor = f"{PREFIX}{parts.fragment}" if is_markdown(path) else parts.fragment
        return code_url(repo_id(self._root), path) + (f"#{anchor}" if parts.fragment else "")

    def _has(self, path: str) -> bool:
        at = bisect_left(self._paths, path)
        if path and self._paths[at : at + 1] == [path]:
            return True
        inside = f"{path}/" if path else ""
        at = bisect_left(self._paths, inside)
        return at < len(self._paths) and self._paths[at].startswith(inside)
