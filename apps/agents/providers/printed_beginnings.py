"""Whether a text may become a printed call, after more of it: until then it is held back."""

import json
import re

from apps.agents.providers.calls import DECODER
from apps.agents.providers.printed_forms import KEYS, MAX_THOUGHT, NAME, CallReader, folded

_OPEN_TAG = re.compile(r"<(?:[/|｜]{0,2}[\w▁|｜:./-]{0,60}(?:[= ][\w:./=\"' -]{0,250})?)?")
_LITERALS = ("[TOOL_CALLS]", "functools[", "call:", "Observation:", "~~~")
_REACT = re.compile(
    rf"Action:\s{{0,3}}(?:{NAME})?(?:\s{{1,3}}(?:Action Input:[^\0]*|[A-Z][\w ]{{0,12}})?)?"
)
_FENCE_BEGINS = re.compile(r"`{1,3}$|(?:```|~~~)\w{0,20}$")
_FIRST_KEY = re.compile(r'[\[{\s]{0,99}(?:"(?P<key>\w{0,200})(?P<rest>"[^\0]*)?)?')
# A link, a bracket or inline code after markup is a sentence about it.
_AFTER_MARKUP = re.compile(
    r"[\w.:/-]{0,200}(?:<[^<>]{0,60}>?"
    r"|\s{0,9}(?:$|[{<]|\[\s{0,9}(?:$|[\[{\"']|[A-Z_]{1,7}(?:$|\]))|`(?:$|`)))"
)
_WORD = re.compile(
    r"\[?\s{0,9}(?:print\(\s{0,9})?(?:(?:default_api|functions|tools)\.)?(?P<word>\w{0,200})(?P<rest>[^\0]*)"
)
_PYTHON_WORDS = ("print", "default_api", "functions", "tools")
_AFTER_WORD = re.compile(r"(?:\.(?:c|ca|cal|call)?)?\s{0,9}(?:$|[({`<])|\.call\(")


def may_begin(reader: CallReader) -> bool:
    """Whether what a reader has not read may become a call, after more text."""
    rest = reader.rest
    if not rest or _OPEN_TAG.fullmatch(rest) or _FENCE_BEGINS.match(rest):
        return True
    if any(literal.startswith(rest) for literal in _LITERALS) or _begins_react(rest):
        return True
    if rest.startswith(("<|channel|>", "<|start|>")) or reader.element():
        return True
    if reader.is_marked and (_AFTER_MARKUP.match(rest) or rest.startswith("call:")):
        return True
    return _begins_json(rest, reader) or _begins_python(rest, reader)


def _begins_react(rest: str) -> bool:
    beginnings = ("Action:", "Thought:")
    if any(one.startswith(rest) for one in beginnings):
        return True
    if rest.startswith("Thought:"):
        return len(rest) <= MAX_THOUGHT
    return _REACT.fullmatch(rest) is not None


def _begins_json(rest: str, reader: CallReader) -> bool:
    match = _FIRST_KEY.fullmatch(rest) if rest[0] in "[{" else None
    if match is None:
        return False
    key, following = match["key"], match["rest"]
    if key is None:
        return True
    if following is None:
        return any(known.startswith(key) for known in (*KEYS, *reader.names))
    return (key in KEYS or folded(key) in reader.known) and _is_unfinished(rest)


def _is_unfinished(text: str) -> bool:
    """Whether a text is JSON without its end."""
    try:
        DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        # A word such as `true` may be cut, too.
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - 5
    except (ValueError, RecursionError):
        return False
    return False


def _begins_python(rest: str, reader: CallReader) -> bool:
    match = _WORD.fullmatch(rest)
    if match is None:
        return False
    word, following = match["word"], match["rest"]
    if not following:
        return any(one.startswith(word) for one in (*reader.names, *_PYTHON_WORDS))
    return folded(word) in reader.known and _AFTER_WORD.match(following) is not None
