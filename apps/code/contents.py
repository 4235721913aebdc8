"""The type of a file whose extension several languages have, by its content."""

import re
from collections.abc import Callable, Mapping

import re2

from apps.code.cells import notebook_language

# Bytes at the beginning that are looked at.
MAX_BYTES = 65_536
# Comments and strings of C. Each branch matches to the end of the text, if need be, so that it is
# linear.
TEXT = re.compile(r'//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|"(?:[^"\\\n]|\\[^\n]?)*(?:"|(?=\n)|\Z)')
OBJECTIVE_C = re.compile(r"(?m)^[ \t]*(?:@(?:interface|protocol|class|end)\b|#import\b)")
# What C++ has and C has not, outside of comments and strings. re2 takes a hundredth of the time of
# `re` for so many branches: most headers have none of them, and are read to the end.
CPP = re2.compile(
    r"\b(?:class|namespace)[ \t]+\w|\bnamespace\s*\{|\btemplate[ \t]*<"
    r"|\b(?:public|private|protected)[ \t]*:|\w::\w|\busing[ \t]+\w+[ \t]*="
    r"|\b(?:constexpr|virtual|noexcept|nullptr|explicit|typename|decltype|operator|override)\b"
    r"|\bstruct[ \t]+\w+(?:[ \t]+\w+)?[ \t]*:[ \t]*[A-Za-z_]|\)[ \t]*const[ \t]*[;{]"
    r"|\bfriend[ \t]+\w|=[ \t]*(?:default|delete)[ \t]*;"
    r"|\benum[ \t]+(?:class|struct)\b|#[ \t]*include[ \t]*<\w+>|\b(?:static|const)_cast[ \t]*<"
)
TEX = re.compile(r"(?m)^[ \t]*\\[A-Za-z@]+|^[ \t]*%")
VISUAL_BASIC = re.compile(r"\AVERSION \d|(?m:^Attribute VB_)")
SHADER = re.compile(r"(?m)^[ \t]*#version\b|\bgl_\w+|\bvoid[ \t]+main[ \t]*\(")


def _header(text: str) -> str:
    if OBJECTIVE_C.search(text):
        return "objc"
    return "cpp" if CPP.search(TEXT.sub(" ", text)) else "c"


def _class(text: str) -> str:
    if VISUAL_BASIC.search(text):
        return "visualbasic"
    return "tex" if TEX.search(text) else "apex"


# Extension → names the type by the text.
DECIDING: Mapping[str, Callable[[str], str]] = {
    "h": _header,
    "cls": _class,
    "fs": lambda text: "glsl" if SHADER.search(text) else "fsharp",
    "ipynb": notebook_language,
}


def type_by_content(extension: str, data: bytes) -> str:
    """The name of the type of a file with this extension; "" if its content does not matter."""
    decide = DECIDING.get(extension)
    text = data[:MAX_BYTES].decode("utf-8", "replace") if decide and data else ""
    return decide(text) if decide and text else ""
