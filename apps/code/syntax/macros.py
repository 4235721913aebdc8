"""What grammars cannot read, such as macros between keywords, is blank in the text that they parse.

The text stays as long as it was, so that bytes, rows and columns are those of the file.
"""

import re
from collections.abc import Mapping, Sequence

_Rule = tuple[Sequence[bytes], re.Pattern[bytes]]

# What is in groups is left out of a text that has one of the words before the pattern: to look for
# words is much quicker.
_KOTLIN: Sequence[_Rule] = (((b'$$"',), re.compile(rb'(\${2,8})(?=")')),)  # of a string, `$$"…"`
_C: Sequence[_Rule] = (
    # `class EXPORT Name {`, but not `class NAME final {`
    (
        (b"class", b"struct", b"union"),
        re.compile(
            rb"\b(?:class|struct|union)[ \t]{1,8}([A-Z][A-Z0-9_]{1,60}(?:\([^()\n]{0,99}\))?)"
            rb"(?=[ \t]{1,8}(?!final\b)[A-Za-z_]\w{0,99}[ \t]{0,8}(?:final\b|[:{\r\n]))"
        ),
    ),
    # Lines that only have `G_BEGIN_DECLS` or the like.
    (
        (b"BEGIN_", b"END_"),
        re.compile(
            rb"(?m)^[ \t]{0,40}((?:[A-Z]{1,20}_)?(?:__)?(?:BEGIN|END)_[A-Z_]{1,60})[ \t]{0,40}\r?$"
        ),
    ),
    (
        (b"_BEGIN", b"_END"),
        re.compile(rb"(?m)^([A-Z][A-Z_]{1,60}_(?:BEGIN|END)(?:_DECLS)?)[ \t]{0,40}\r?$"),
    ),
    # Qt and Unreal.
    (
        (b"Q_OBJECT", b"Q_GADGET", b"Q_PROPERTY", b"Q_DISABLE", b"Q_ENUM", b"Q_FLAG", b"_BODY"),
        re.compile(
            rb"(?m)^[ \t]{0,40}((?:Q_(?:OBJECT|GADGET|PROPERTY|DISABLE_COPY|ENUM|FLAG|CLASSINFO)"
            rb"|U(?:CLASS|STRUCT|ENUM|INTERFACE|PROPERTY|FUNCTION)|GENERATED_(?:\w{1,20}_)?BODY)"
            rb"\b(?:\([^\n]{0,400}\))?)[ \t]{0,40}\r?$"
        ),
    ),
    (
        (b"slots", b"Q_SLOTS"),
        re.compile(rb"\b(?:public|private|protected)[ \t]{1,8}(slots|Q_SLOTS)(?=[ \t]{0,8}:)"),
    ),
    (
        (b"signals", b"Q_SIGNALS"),
        re.compile(rb"(?m)^[ \t]{0,40}((?:signals|Q_SIGNALS)[ \t]{0,8}:)[ \t]{0,40}\r?$"),
    ),
)
_UNREADABLE: Mapping[str, Sequence[_Rule]] = {
    "kotlin": _KOTLIN,
    **dict.fromkeys(("c", "cpp", "cuda", "objc"), _C),
}
_ENUM = re.compile(
    rb"\btypedef[ \t]{1,8}(?:NS|CF)_(?:CLOSED_)?(?:ENUM|OPTIONS)[ \t]{0,8}"
    rb"\([^,()\n]{0,100},[ \t]{0,8}(\w{1,100})[ \t]{0,8}\)"
)


def readable(source: bytes, grammar: str) -> bytes:
    """The text that a grammar parses."""
    for words, pattern in _UNREADABLE.get(grammar, ()):
        if any(word in source for word in words):
            source = pattern.sub(_without_group, source)
    return _ENUM.sub(_as_enum, source) if grammar == "objc" else source


def _without_group(match: re.Match[bytes]) -> bytes:
    first, end = (at - match.start() for at in match.span(1))
    return match[0][:first] + b" " * (end - first) + match[0][end:]


def _as_enum(match: re.Match[bytes]) -> bytes:
    """`enum Kind` for `typedef NS_ENUM(NSInteger, Kind)`"""
    first, end = (at - match.start() for at in match.span(1))
    return b"enum".ljust(first) + match[1] + b" " * (len(match[0]) - end)
