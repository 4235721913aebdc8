"""Declarations by keywords at the beginning of lines, in languages without a safe grammar."""

import re
from collections.abc import Iterator, Mapping, Sequence

from apps.code.syntax.pieces import Declaration, Outline

# Characters of a line that are searched for a declaration.
MAX_LINE = 400
_ANY = re.compile(
    r"""\A [ \t]* (?: (?: export|public|private|protected|static|async|pub|local|final|abstract
        |create|or|replace|global ) \s+ )*
    (?: (?P<function> function|func|fun|fn|def|defn|sub|subroutine|proc|procedure)
      | (?P<keyword> class|struct|interface|trait|enum|type|record|module|package|namespace|macro
        |table|view|model|contract) )
    \s+ (?P<name> [A-Za-z_$][\w$]*)""",
    re.IGNORECASE | re.VERBOSE,
)
# Columns 1 to 6 of a line of COBOL are a number or a label, column 7 is blank. Paragraphs begin in
# the four columns after it, and statements to their right; so they do in the free format, mostly.
_COBOL = re.compile(
    r"""\A (?: .{6}[ ] )? [ ]{0,3}
    (?: (?P<program> (?:program|function|class|method)-id ) \s* \. \s* ["']?
      | (?P<record> 01|77 ) \s+ (?! filler\b )
      | (?P<file> fd|sd ) \s+
      | (?= [\w-]+ \s+ section \s* \. )
        (?P<section> (?! (?:working-storage|linkage|file|local-storage|configuration|input-output
            |communication|report|screen) \b ) )
      | (?= [\d-]* [a-z] [\w-]* \. \s* \Z )
        (?P<paragraph> (?! (?:end-[\w-]+|exit|goback|stop|continue|else|author|installation
            |date-written|date-compiled|security|remarks|file-control|i-o-control|special-names
            |repository|source-computer|object-computer|declaratives) \. ) ) )
    (?P<name> [a-z0-9][\w-]* )""",
    re.IGNORECASE | re.VERBOSE,
)
_COBOL_COLUMNS = 72  # what follows is ignored
_ABAP = re.compile(
    r"""\A [ \t]*
    (?: (?P<class> class ) \s+ (?= \S+ \s+ (?:definition|implementation) \b
            (?! \s+ (?:load|deferred|local) \b ) )
      | (?P<interface> interface ) \s+ (?! \S+ \s+ (?:load|deferred) \b )
      | (?P<method> (?:class-)? methods? ) (?: \s*:\s* | \s+ )
      | (?P<function> form | function ) \s+
      | (?P<program> report|program|function-pool|type-pool ) \s+
      | (?P<module> module ) \s+ (?= \S+ \s+ (?:input|output) \b )
      | (?P<macro> define ) \s+ (?= \S+ \s* \. )
      | (?P<type> types ) (?: \s*:\s* | \s+ ) (?: begin \s+ of \s+ )?
      | (?P<constant> constants ) (?: \s*:\s* | \s+ ) (?: begin \s+ of \s+ )? )
    (?P<name> [a-z_/][\w/~]* )""",
    re.IGNORECASE | re.VERBOSE,
)
# `public."order"` is `order`, as in `documents`.
_SQL = re.compile(
    r"""\A [ \t]* (?: (?: create|or|replace|alter|global|local|temp|temporary|unlogged|materialized
        |foreign|external|virtual ) \s+ )*
    (?: (?P<function> function|procedure|proc)
      | (?P<keyword> table|view|type|trigger|package (?: \s+ body )? ) )
    \s+ (?: if \s+ not \s+ exists \s+ )?
    (?: (?: [\w$]+ | "[^"]+" | `[^`]+` | \[[^\]]+\] ) \. ){0,3}
    ["`\[]? (?P<name> (?<= ["`\[] ) [^"`\]]+ | [A-Za-z_$][\w$]* )""",
    re.IGNORECASE | re.VERBOSE,
)
_OCAML = re.compile(
    r"""\A [ \t]*
    (?: (?P<function> val|external) | (?P<keyword> type|class|exception|module (?: \s+ type )? ) )
    \s+ (?: (?: nonrec|rec|virtual ) \s+ )? (?: (?: [+-]?'\w+ | \( [^()]{0,100} \) ) \s+ )?
    (?P<name> [A-Za-z_][\w']*)""",
    re.VERBOSE,
)
# Language → its own pattern. The last group that matches beside `name` is the kind.
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "cobol": _COBOL,
    "abap": _ABAP,
    "sql": _SQL,
    "ocamli": _OCAML,
}


def outline_by_words(lines: Sequence[str], language: str) -> Outline:
    """The outline of code without a grammar. `language`: FileType.name"""
    declared = list(keyword_lines(lines, language))
    return Outline(names=[(one.start - 1, one.name) for one in declared], declarations=declared)


def keyword_lines(lines: Sequence[str], language: str) -> Iterator[Declaration]:
    """The declarations in lines of code that begin with a keyword. `language`: FileType.name"""
    pattern = _PATTERNS.get(language, _ANY)
    width = _COBOL_COLUMNS if pattern is _COBOL else MAX_LINE
    for number, line in enumerate(lines, start=1):
        if match := pattern.match(line[:width]):
            name, kinds = match["name"], match.groupdict().items()
            kind = next(kind for kind, text in kinds if text is not None)
            kind = match["keyword"].lower().split()[0] if kind == "keyword" else kind
            signature = " ".join(line[:width].split()).rstrip(" {:=(")
            yield Declaration(name, name, kind, number, number, signature)
