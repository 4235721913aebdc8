"""Parse the code of a file."""

from functools import cache
from typing import NamedTuple

from tree_sitter import Language, Node, Parser
from tree_sitter_language_pack import get_language

from apps.code.syntax.pages import PAGES, Range, page_of


class Code(NamedTuple):
    """The code of a file. Of a page, `source` is blank where the page is no code."""

    grammar: str
    source: bytes
    root: Node
    page: Node | None = None  # the root of the page; None: the whole file is code
    scripts: tuple[Range, ...] = ()  # of the page
    tags: tuple[Node, ...] = ()  # the components that the page uses, and its snippets


@cache
def language(grammar: str) -> Language:
    language_: Language = get_language(grammar)
    return language_


def parse(source: bytes, grammar: str) -> Code:
    """The code of a file; of a page it is TypeScript. A faulty grammar may never return."""
    root = Parser(language(grammar)).parse(source).root_node
    if grammar not in PAGES:
        return Code(grammar, source, root)
    page = page_of(source, root, grammar)
    inner, text = "tsx" if page.has_jsx else "typescript", bytes(page.text)
    code = Parser(language(inner)).parse(text).root_node
    return Code(inner, text, code, root, tuple(page.scripts), tuple(page.tags))
