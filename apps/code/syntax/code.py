"""Parse the code of a file."""

from bisect import bisect
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from tree_sitter import Language, Node, Parser
from tree_sitter_language_pack import get_language

from apps.code.cells import SIGN, blank, cells_of, code_lines
from apps.code.languages import grammar_of
from apps.code.syntax import razor
from apps.code.syntax.macros import readable
from apps.code.syntax.pages import PAGES, Range, page_of


class Code(NamedTuple):
    """The code of a file. Of a page or a notebook, `source` is blank where it is no code."""

    grammar: str
    source: bytes
    root: Node
    page: Node | None = None  # the root of the page; None: the whole file is code
    scripts: tuple[Range, ...] = ()  # of the page
    tags: tuple[Node, ...] = ()  # the components that the page uses, and its snippets
    wrapper: str = ""  # name of a class that is no definition; what is outside may be code too


@cache
def language(grammar: str) -> Language:
    language_: Language = get_language(grammar)
    return language_


def _root(source: bytes, grammar: str) -> Node:
    return Parser(language(grammar)).parse(readable(source, grammar)).root_node


def _notebook_code(lines: Sequence[str], grammar: str, kind: str = "") -> bytes:
    """The code in the cells of a kind. If an error in a cell reaches others, cells with errors are
    blank."""
    code, cells = code_lines(lines, kind), cells_of(lines)
    source = "\n".join(code).encode()
    if not _reaches_other_cells(_root(source, grammar), [cell.mark for cell in cells]):
        return source
    for cell in cells:
        alone = "\n".join(code[cell.first : cell.end]).encode()
        if cell.kind == kind and _root(alone, grammar).has_error:
            code[cell.first : cell.end] = map(blank, code[cell.first : cell.end])
    return "\n".join(code).encode()


def _reaches_other_cells(root: Node, marks: Sequence[int]) -> bool:
    """Whether an error of a tree spans the row of a mark."""
    nodes = [root] if root.has_error else []
    while nodes:
        node = nodes.pop()
        first, last = (bisect(marks, point.row) for point in (node.start_point, node.end_point))
        if node.is_error and first < last:
            return True
        nodes += [child for child in node.children if child.has_error]
    return False


def parse_all(lines: Sequence[str], grammar: str) -> dict[str, Code]:
    """The code of a file as "", and of a notebook that of its cells in other languages, by their
    name."""
    # Several grammars (make, for one) ignore a last line without a newline.
    codes = {"": parse(("\n".join(lines) + "\n").encode(), grammar)}
    for kind in dict.fromkeys(cell.kind for cell in cells_of(lines)):
        inner = grammar_of(kind)
        if inner and inner not in PAGES and inner not in razor.GRAMMARS:
            source = _notebook_code([*lines, ""], inner, kind)
            codes[kind] = Code(inner, source, _root(source, inner))
    return codes


def parse(source: bytes, grammar: str) -> Code:
    """The code of a file; of a page it is TypeScript, of a notebook that of its cells. A faulty
    grammar may never return."""
    if grammar in razor.GRAMMARS:
        blocks, inner = razor.razor_code(source), razor.GRAMMARS[grammar]
        return Code(inner, blocks, _root(blocks, inner), wrapper=razor.WRAPPER)
    if source.startswith(SIGN.encode()):
        source = _notebook_code(source.decode().split("\n"), grammar)
    root = _root(source, grammar)
    if grammar not in PAGES:
        return Code(grammar, source, root)
    page = page_of(source, root, grammar)
    inner, scripts = "tsx" if page.has_jsx else "typescript", bytes(page.text)
    code = Parser(language(inner)).parse(scripts).root_node
    return Code(inner, scripts, code, root, tuple(page.scripts), tuple(page.tags))
