"""Find doc comments and their definitions by lines and patterns.

There is no parser: the corpus has hundreds of megabytes, a few errors are only noise in training,
and one rule by indentation finds the end of a definition in every language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_LINES = 150
MOST_ABOVE = 400
LONG = 60  # lines; a longer definition is represented by the heads of the definitions in it
MOST_HEADS = 30
MOST_SIGNATURE = 600


@dataclass(frozen=True)
class Documented:
    """A definition with its doc comment. Rows are 0-based."""

    doc: str
    doc_first: int  # first row of the comment
    doc_end: int  # the row after its last
    name: str
    symbol: str  # the name, qualified by the enclosing definition
    signature: str
    first: int  # first row of the definition
    end: int  # the row after its last
    heads: tuple[str, ...] | None  # lines that represent a long definition; None: its own lines


@dataclass(frozen=True)
class Syntax:
    """The comments and definitions of a language."""

    define: re.Pattern[str]  # a definition, with its name in one of the groups
    lines: tuple[str, ...] = ()  # prefixes of line comments
    block: bool = False  # it has block comments, /** … */
    # Lines that may be between comment and definition.
    between: re.Pattern[str] = re.compile(r"\s*(@\w|\]|\))")


def _words(text: str) -> str:
    """A pattern for any number of these words: modifiers before a keyword."""
    return rf"(?:(?:{'|'.join(text.split())})\s+)*"


_TYPE = r"[\w:<>,*&\s\[\]~.?@]{0,160}?"
_JAVASCRIPT = re.compile(
    r"\s*"
    + _words(
        "export default declare async static public private protected readonly abstract"
        " override get set"
    )
    + r"(?:function\s*\*?\s*([\w$]+)|(?:class|interface|enum|type|namespace)\s+([\w$]+)"
    r"|(?:const|let|var)\s+([\w$]+)\s*(?::[^=\n]+)?=|([\w$.]+)\s*[=:]\s*(?:async\s*)?(?:function|\(|class\b)"
    r"|[*#]?([\w$]+)\??\s*(?:<[^>\n]*>)?\()"
)
_C = re.compile(
    r"\s*(?:template\s*<[^{;]*>\s*)?(?:(?:typedef\s+)?(?:class|struct|union|enum|namespace)\s+"
    r"(?:[A-Z_]+\s+)?(\w+)[^;(]*$|#define\s+(\w+)\(|" + _TYPE + r"\b([\w~]+(?:::[\w~]+)*)\s*\()"
)
_JAVA = re.compile(
    r"\s*(?:[\w\s]*\b(?:class|interface|enum|record|object|trait|struct)\s+(\w+)|"
    r"(?:[\w\s]*\b(?:def|fun|val|var)\s+(?:<[^>]*>\s*)?(?:[\w<>?]+\.)?(\w+))|"
    + _TYPE
    + r"\b(\w+)\s*\()"
)
_SWIFT = re.compile(
    r"\s*(?:@\w+(?:\([^)]*\))?\s*)*[\w\s()]*?\b(?:func|struct|class|enum|protocol|actor|extension|var|let"
    r"|typealias|(?=init\b))\s*([\w.]+)"
)
SYNTAXES: dict[str, Syntax] = {
    **dict.fromkeys(("javascript", "jsx", "typescript", "tsx"), Syntax(_JAVASCRIPT, block=True)),
    **dict.fromkeys(("java", "kotlin", "scala", "groovy", "dart"), Syntax(_JAVA, block=True)),
    **dict.fromkeys(
        ("c", "cpp", "objc"),
        Syntax(_C, ("//",), True, re.compile(r"\s*(template\s*<[^{;]*>\s*$|[A-Z_]+\s*$|__\w+)")),
    ),
    "csharp": Syntax(_JAVA, ("///",), False, re.compile(r"\s*\[|\s*\w.*\]\s*$")),
    "swift": Syntax(_SWIFT, ("///",), True),
    "go": Syntax(
        re.compile(r"func\s*(?:\(([^)]*)\)\s*)?(\w+)\s*[\[(]|type\s+(\w+)\s+\w"), ("//",), False
    ),
    "rust": Syntax(
        re.compile(
            r"\s*(?:pub(?:\([^)]*\))?\s+)?"
            + _words('const unsafe async extern "C" default')
            + r"(?:fn|struct|enum|trait|union|mod|macro_rules!)\s+(\w+)"
        ),
        ("///", "//"),
        False,
        re.compile(r"\s*(#\[|\w+.*\)\]$|\)\])"),
    ),
    "php": Syntax(
        re.compile(
            r"\s*"
            + _words("final abstract public private protected static readonly")
            + r"(?:function\s+&?|class\s+|trait\s+|interface\s+|enum\s+)(\w+)"
        ),
        (),
        True,
        re.compile(r"\s*(#\[|@)"),
    ),
    "ruby": Syntax(
        re.compile(r"\s*(?:def\s+(?:self\.)?([\w?!=]+)|(?:class|module)\s+([\w:]+))"), ("#",)
    ),
    "bash": Syntax(
        re.compile(r"\s*(?:function\s+)?([\w:.-]+)\s*\(\)|\s*function\s+([\w:.-]+)"), ("#",)
    ),
    "perl": Syntax(re.compile(r"\s*sub\s+(\w+)"), ("#",)),
    "lua": Syntax(
        re.compile(r"\s*(?:local\s+)?function\s+([\w.:]+)|\s*(?:local\s+)?([\w.]+)\s*=\s*function"),
        ("--",),
    ),
    "haskell": Syntax(
        re.compile(
            r"(?:data|newtype|class|type)\s+(?:[^=\n]*=>\s*)?(\w+)|([a-z]\w*'*)(?:\s*,[^:]*)?\s*(?:::|$)"
        ),
        ("--",),
        True,
    ),
    "erlang": Syntax(re.compile(r"([a-z]\w*)\("), ("%",), False, re.compile(r"-spec|\s+")),
    "zig": Syntax(re.compile(r"\s*(?:pub\s+)?(?:fn|const)\s+(\w+)"), ("///",)),
}
_KEYWORDS = frozenset(
    "if for while switch catch return function else do try case foreach using lock sizeof elif"  # noqa: SIM905
    " defined assert throw new await typeof super this describe it test expect".split()
)
_CONTAINER = re.compile(
    r"\s*(?:[\w@()]+\s+)*?(?:class|interface|struct|enum|trait|impl(?:<[^>]*>)?(?:.*\bfor)?|object|module"
    r"|protocol|extension|namespace|defmodule|actor)\s+([A-Za-z_][\w.:]*)"
)
_PYTHON = re.compile(r"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_QUOTE = re.compile(r"\s*[rRuU]?(\"\"\"|'''|\"(?!\")|'(?!'))")
_HEREDOC = re.compile(
    r'^[ \t]*@(doc|moduledoc)[ \t]+(?:~[sS])?(?:"""(.*?)^[ \t]*"""|"([^"\n]+)")', re.M | re.S
)
_ELIXIR = re.compile(r"\s*(?:defmodule|def|defp|defmacro|defguard|defdelegate)\s+([\w.?!]+)")
_CLOSES = re.compile(r"\s*(?:[)}\]]+[;,)]*|end[;,)]*|fi|done|esac)\s*(?:$|//|#|--)")
_GOES_ON = re.compile(r"\s*[({)\]]|\s*(?:where|then|do|begin|:|=>|->|=|&&|\|)")


def documented(language: str, lines: list[str]) -> Iterator[Documented]:
    """The documented definitions of a file, in order."""
    if language == "python":
        yield from _python(lines)
    elif language == "elixir":
        yield from _elixir(lines)
    elif language in SYNTAXES:
        yield from _commented(SYNTAXES[language], lines)


def about(language: str, lines: list[str]) -> tuple[int, int, str] | None:
    """The comment at the top of a file: first row, the row after the last, text."""
    row = next((at for at, line in enumerate(lines[:50]) if line.strip() and line[:2] != "#!"), 0)
    if language == "python":
        while row < min(len(lines), 50) and (lines[row][:1] == "#" or not lines[row].strip()):
            row += 1
        return _string(lines, row, len(lines))
    syntax = SYNTAXES.get(language)
    for first, end in _comments(syntax, lines[:80]) if syntax else ():
        text = "\n".join(lines[first:end])
        if re.search(r"copyright|licen[sc]e|spdx|\brights\b", text, re.IGNORECASE):
            continue
        marked = re.search(r"//!|/\*!|@file|@module|\\file|@fileoverview|@brief|\{- ?\|", text)
        alone = end < len(lines) and not lines[end].strip() and first <= row + 40
        package = end < len(lines) and lines[end].startswith(("package ", "library ", "module "))
        return (first, end, text) if marked or package or (alone and end - first > 1) else None
    return None


def _python(lines: list[str]) -> Iterator[Documented]:
    for row, line in enumerate(lines):
        match = _PYTHON.match(line)
        if not match:
            continue
        head = next(
            (at for at in range(row, min(row + 30, len(lines))) if _ends_head(lines[at])), -1
        )
        doc = _string(lines, head + 1, len(lines)) if head >= 0 else None
        if doc:
            yield _definition(lines, row, match.group(2), head + 1, doc)


def _ends_head(line: str) -> bool:
    return line.partition("#")[0].rstrip().endswith(":")


def _string(lines: list[str], row: int, end: int) -> tuple[int, int, str] | None:
    while row < end and not lines[row].strip():
        row += 1
    opening = _QUOTE.match(lines[row]) if row < end else None
    if not opening:
        return None
    quote, rest = opening.group(1), lines[row][opening.end() :]
    for last in range(row, min(end, row + MOST_LINES)):
        if quote in (rest if last == row else lines[last]):
            text = "\n".join([rest, *lines[row + 1 : last + 1]]).rpartition(quote)[0]
            return row, last + 1, text
        if len(quote) == 1:
            return None
    return None


def _elixir(lines: list[str]) -> Iterator[Documented]:
    text = "\n".join(lines)
    for match in _HEREDOC.finditer(text):
        first = text.count("\n", 0, match.start())
        end = text.count("\n", 0, match.end()) + 1
        step, row = (-1, first - 1) if match.group(1) == "moduledoc" else (1, end)
        for at in range(row, max(-1, min(len(lines), row + step * 8)), step):
            found = _ELIXIR.match(lines[at])
            if found:
                doc = first, end, match.group(2) or match.group(3)
                yield _definition(lines, at, found.group(1), at + 1, doc)
                break


def _commented(syntax: Syntax, lines: list[str]) -> Iterator[Documented]:
    for first, end in _comments(syntax, lines):
        row = end
        while row < min(end + 8, len(lines)) and syntax.between.match(lines[row]):
            row += 1
        match = syntax.define.match(lines[row]) if row < len(lines) else None
        names = [name for name in match.groups() if name] if match else []
        if names and names[-1] not in _KEYWORDS:
            doc = first, end, "\n".join(lines[first:end])
            yield _definition(lines, row, names[-1], row + 1, doc)


def _comments(syntax: Syntax, lines: list[str]) -> Iterator[tuple[int, int]]:
    """Consecutive rows of line comments, as first row and the row after the last."""
    row = 0
    while row < len(lines):
        text = lines[row].lstrip()
        first = row
        row += 1
        if syntax.block and text.startswith(("/*", "{-")):
            while "*/" not in lines[row - 1] and "-}" not in lines[row - 1] and row < len(lines):
                row += 1
            yield first, row
        elif syntax.lines and text.startswith(syntax.lines) and not text.startswith("#!"):
            while row < len(lines) and lines[row].lstrip().startswith(syntax.lines):
                row += 1
            yield first, row


def _definition(
    lines: list[str], row: int, name: str, body: int, doc: tuple[int, int, str]
) -> Documented:
    end = _end(lines, row, name)
    own = name.replace("::", ".").replace(":", ".")
    around = _enclosing(lines, row)
    symbol = f"{around}.{own}" if around else own
    head = lines[row:body] if body - row > 1 else _head(lines, row, end)
    signature = " ".join(" ".join(head).split())[:MOST_SIGNATURE].rstrip(" {:=")
    heads = _heads(lines, row, end) if end - row > LONG else None
    return Documented(
        doc[2], doc[0], doc[1], own.rpartition(".")[2], symbol, signature, row, end, heads
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: list[str], row: int, name: str) -> int:
    """The row after a definition: the first line that is not indented deeper than its first line,
    and is neither a closing bracket nor the continuation of its head."""
    depth = _indent(lines[row])
    last = row
    for at in range(row + 1, min(len(lines), row + MOST_LINES)):
        line = lines[at]
        if not line.strip():
            continue
        if _indent(line) <= depth:
            if _CLOSES.match(line) and _indent(line) == depth:
                last = at
                if not line.rstrip().endswith((",", "(", "{")):
                    break
                continue
            if not _GOES_ON.match(line) and not line.startswith(name + " "):
                break
        last = at
    return last + 1


def _head(lines: list[str], row: int, end: int) -> list[str]:
    for at in range(row, min(end, row + 12)):
        if lines[at].rstrip().endswith(("{", ":", "do", "=", "=>", ";", "then")):
            return lines[row : at + 1]
    return lines[row : row + 1]


def _heads(lines: list[str], row: int, end: int) -> tuple[str, ...] | None:
    """The lines at the first level of indentation that look like heads of definitions."""
    inner = [line for line in lines[row + 1 : end] if line.strip()]
    depth = _indent(inner[0]) if inner else 0
    heads = [line for line in inner if _indent(line) == depth and ("(" in line or ":" in line)]
    container = _CONTAINER.match(lines[row]) or _ELIXIR.match(lines[row])
    return (lines[row], *heads[:MOST_HEADS]) if container and len(heads) > 2 else None


def _enclosing(lines: list[str], row: int) -> str:
    """The name of the innermost container around a row, by indentation."""
    depth = _indent(lines[row])
    for at in range(row - 1, max(-1, row - MOST_ABOVE), -1):
        if depth == 0:
            break
        line = lines[at]
        if line.strip() and _indent(line) < depth:
            match = _CONTAINER.match(line)
            if match:
                return match.group(1).replace("::", ".").rstrip(":")
            if not _GOES_ON.match(line) and not _CLOSES.match(line):
                depth = _indent(line)
    return ""
