"""What grammars cannot read, such as macros between keywords, is blank in the text that they parse.

The text stays as long as it was, so that bytes, rows and columns are those of the file.
"""

import re
from collections.abc import Mapping, Sequence

_Rule = tuple[Sequence[bytes], re.Pattern[bytes]]


# `class EXPORT Name {`, but not `class NAME final {`. Patterns begin with the word, because to look
# for it is quick.
_EXPORT = rb"[ \t]{1,8}([A-Z][A-Z0-9_]{1,60}(?:\([^()\n]{0,99}\))?)(?=[ \t]{1,8}"
_TYPE = rb"(?!final\b)[A-Za-z_]\w{0,99}[ \t]{0,8}(?:final\b|[:{\r\n]))"
# A variable: `struct RECT rect{0, 0}`
_NO_VARIABLE = rb"(?![a-z_]\w{0,99}[ \t]{0,8}\{[^;{}]{0,400}\})"
# Groups are left out of a text that has one of the words. To look for words is much quicker.
_KOTLIN: Sequence[_Rule] = (
    ((b'$$"',), re.compile(rb'(\${2,8})(?=")')),  # of a string, `$$"…"`
    # `context(Log) fun write() {`
    ((b"context(",), re.compile(rb"\n[ \t]{0,80}(context\([^()\n]{1,200}\))(?=\s{1,80}[a-z@])")),
)
# The type of a tag, as in `styled.div<Props>`…``: without it, `<` compares.
_TYPESCRIPT: Sequence[_Rule] = (
    (
        (b">`",),
        re.compile(
            rb"[\w>](?:\.\w{1,60}|\([^()\n]{0,200}\))(<(?:[^<>`;]|<[^<>`;]{0,200}>){1,400}>)(?=`)"
        ),
    ),
)
_C: Sequence[_Rule] = (
    ((b"struct",), re.compile(rb"struct(?<!\wstruct)" + _EXPORT + _NO_VARIABLE + _TYPE)),
    ((b"union",), re.compile(rb"union(?<!\wunion)" + _EXPORT + _NO_VARIABLE + _TYPE)),
    # `API(int, sum)(int a) {` and `static DEFINE_PER_CPU(int, count);` have the type in the macro.
    (
        (b")(", b"PER_CPU"),
        re.compile(
            rb"\n(?:(?:static|extern|inline)[ \t]{1,8}){0,3}"
            rb"((?:DEFINE|DECLARE)_PER_CPU\w{0,40}\(|[A-Z][A-Z0-9_]{3,60}\((?=[^()\n]{1,200}\)\())"
            rb"[A-Za-z_][\w \t*]{0,99}(,)[ \t]{0,8}[A-Za-z_]\w{0,99}[ \t]{0,8}(\))"
        ),
    ),
    # `LIST_HEAD(first);` and `static DEFINE_HASHTABLE(table, 8);` are like `LIST_HEAD first;`.
    (
        (b"DEFINE_", b"DECLARE_", b"_HEAD("),
        re.compile(
            rb"\n(?:static[ \t]{1,8})?(?:(?:DEFINE|DECLARE)_(?!PER_CPU)[A-Z0-9_]{1,60}"
            rb"|[A-Z][A-Z_]{1,60}_HEAD)(\()[ \t]{0,8}[A-Za-z_]\w{0,99}"
            rb"((?:\s{0,40},[^;{}]{0,400})?\))(?=\s{0,40}[;=])"
        ),
    ),
    # Lines that only have `G_BEGIN_DECLS` or the like.
    (
        (b"BEGIN_", b"END_", b"_BEGIN\n", b"_END\n", b"_BEGIN\r", b"_END\r"),
        re.compile(
            rb"\n(?:[ \t]{0,40}((?:[A-Z]{1,20}_)?(?:__)?(?:BEGIN|END)_[A-Z_]{1,60})"
            rb"|([A-Z][A-Z_]{1,60}_(?:BEGIN|END)(?:_DECLS)?))[ \t]{0,40}(?=\r?\n|\Z)"
        ),
    ),
)
_CPP: Sequence[_Rule] = (
    *_C,
    ((b"class",), re.compile(rb"class(?<!\wclass)" + _EXPORT + _TYPE)),
    # After parameters: `int size() const NAME_NOEXCEPT;`
    (
        (b"_NOEXCEPT", b"_NOTHROW", b"_OVERRIDE", b"_FINAL"),
        re.compile(
            rb"\)(?:[ \t]{1,8}const)?[ \t]{1,8}"
            rb"([A-Z_][A-Z0-9_]{0,60}_(?:NOEXCEPT|NOTHROW|OVERRIDE|FINAL))(?=[ \t]{0,8}[;{\r\n])"
        ),
    ),
    # Qt and Unreal.
    (
        (b"Q_OBJECT", b"Q_GADGET", b"Q_PROPERTY", b"Q_DISABLE", b"Q_ENUM", b"Q_FLAG", b"_BODY"),
        re.compile(
            rb"\n[ \t]{0,40}((?:Q_(?:OBJECT|GADGET|PROPERTY|DISABLE_COPY|ENUM|FLAG|CLASSINFO)"
            rb"|U(?:CLASS|STRUCT|ENUM|INTERFACE|PROPERTY|FUNCTION)|GENERATED_(?:\w{1,20}_)?BODY)"
            rb"\b(?:\([^\n]{0,400}\))?)[ \t]{0,40}(?=\r?\n|\Z)"
        ),
    ),
    (
        (b"slots", b"Q_SLOTS"),
        re.compile(rb"\b(?:public|private|protected)[ \t]{1,8}(slots|Q_SLOTS)(?=[ \t]{0,8}:)"),
    ),
    (
        (b"signals", b"Q_SIGNALS"),
        re.compile(rb"\n[ \t]{0,40}((?:signals|Q_SIGNALS)[ \t]{0,8}:)[ \t]{0,40}(?=\r?\n|\Z)"),
    ),
)
_UNREADABLE: Mapping[str, Sequence[_Rule]] = {
    "kotlin": _KOTLIN,
    **dict.fromkeys(("typescript", "tsx"), _TYPESCRIPT),
    "c": _C,
    **dict.fromkeys(("cpp", "cuda", "objc"), _CPP),
}
# In the place of a macro with a type, so that the declaration begins there.
_BEFORE_TYPE = b"const"
_NOT_A_BREAK = re.compile(rb"[^\r\n]")
_ENUM = re.compile(
    rb"\btypedef[ \t]{1,8}(?:NS|CF)_(?:CLOSED_)?(?:ENUM|OPTIONS)[ \t]{0,8}"
    rb"\([^,()\n]{0,100},[ \t]{0,8}(\w{1,100})[ \t]{0,8}\)"
)
# A block of members in C# 14, `extension<T>(List<T> list) where T : class {`
_EXTENSION = re.compile(
    rb"((?:[{};\n]|\A)[ \t]{0,80})extension(?=[ \t]{0,8}[<(])([^;{}]{2,800}\)[^;{}()]{0,400})(?=\{)"
)


def readable(source: bytes, grammar: str) -> bytes:
    """The text that a grammar parses."""
    rules = _UNREADABLE.get(grammar, ())
    text = b"\n" + source if rules else source  # lines begin after a line break
    for words, pattern in rules:
        if any(word in text for word in words):
            text = pattern.sub(_without_groups, text)
    text = text[1:] if rules else text
    if grammar == "csharp" and b"extension" in text:
        return _EXTENSION.sub(_as_namespace, text)
    return _ENUM.sub(_as_enum, text) if grammar == "objc" else text


def _without_groups(match: re.Match[bytes]) -> bytes:
    text = bytearray(match[0])
    for name, group in enumerate(match.groups(b""), start=1):
        first, end = (at - match.start() for at in match.span(name))
        text[first:end] = _NOT_A_BREAK.sub(b" ", group)
        if group[-1:] == b"(" and end - first > len(_BEFORE_TYPE):
            text[first : first + len(_BEFORE_TYPE)] = _BEFORE_TYPE
    return bytes(text)


def _as_enum(match: re.Match[bytes]) -> bytes:
    """`enum Kind` for `typedef NS_ENUM(NSInteger, Kind)`"""
    first, end = (at - match.start() for at in match.span(1))
    return b"enum".ljust(first) + match[1] + b" " * (len(match[0]) - end)


def _as_namespace(match: re.Match[bytes]) -> bytes:
    """`namespace _ {`, which may be in a class too."""
    return match[1] + b"namespace _" + _NOT_A_BREAK.sub(b" ", match[2])[2:]
