"""Parse the code of a file."""

import re
from functools import cache
from typing import NamedTuple

from tree_sitter import Language, Node, Parser
from tree_sitter_language_pack import get_language

from apps.code.cells import SIGN, code_lines
from apps.code.syntax.pages import PAGES, Range, page_of

# Of a string of Kotlin, `$$"…"`: the grammar does not know them.
DOLLARS = re.compile(rb'\${2,8}(?=")')


class Code(NamedTuple):
    """The code of a file. Of a page or a notebook, `source` is blank where it is no code."""

    grammar: str
    source: bytes
    root: Node
    page: Node | None = None  # the root of the page; None: the whole file is code
    scripts: tuple[Range, ...] = ()  # of the page
    tags: tuple[Node, ...] = ()  # the components that the page uses, and its snippets


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


@cache
def language(grammar: str) -> Language:
    language_: Language = get_language(grammar)
    return language_


def parse(source: bytes, grammar: str) -> Code:
    """The code of a file; of a page it is TypeScript, of a notebook that of its cells. A faulty
    grammar may never return."""
    if source.startswith(SIGN.encode()):
        source = "\n".join(code_lines(source.decode().split("\n"))).encode()
    text = DOLLARS.sub(_blank, source) if grammar == "kotlin" else source
    root = Parser(language(grammar)).parse(text).root_node
    if grammar not in PAGES:
        return Code(grammar, source, root)
    page = page_of(source, root, grammar)
    inner, scripts = "tsx" if page.has_jsx else "typescript", bytes(page.text)
    code = Parser(language(inner)).parse(scripts).root_node
    return Code(inner, scripts, code, root, tuple(page.scripts), tuple(page.tags))
