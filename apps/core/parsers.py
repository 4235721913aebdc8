"""How the API reads a body, and what it answers in: JSON and nothing else."""

from collections.abc import Iterable
from typing import Any

import orjson
from django.http import HttpResponse
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser

# What walks a body afterwards calls itself once or twice a level, within the interpreter's 1000.
MAX_DEPTH = 100
TOO_DEEP = "JSON parse error - nested too deeply"


class StrictJSONParser(JSONParser):
    """JSON, refusing NaN and Infinity, and nesting deeper than MAX_DEPTH."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        # JSON is UTF-8 (RFC 8259), whatever charset the content type names.
        try:
            body = super().parse(stream, media_type, {"encoding": "utf-8"})
        except RecursionError:
            raise ParseError(TOO_DEEP) from None
        if depth_of(body) > MAX_DEPTH:
            raise ParseError(TOO_DEEP)
        return body


def depth_of(value: Any) -> int:
    """How many arrays and objects stand within each other; a plain value has 0. Gives up above
    MAX_DEPTH."""
    depth, level = 0, [value]
    while depth <= MAX_DEPTH and (level := [one for one in level if isinstance(one, dict | list)]):
        depth += 1
        level = [inner for one in level for inner in _inside(one)]
    return depth


def _inside(one: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return one.values() if isinstance(one, dict) else one


class JSONOnly(BaseContentNegotiation):
    """Every answer is JSON, whatever the caller would rather have: an error in it is readable."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


def rendered(body: Any) -> HttpResponse:
    """The answer that a `Response` of this body becomes, made in the view's own thread, and in a
    tenth of the time: for a Response Django waits for that thread once more."""
    return HttpResponse(orjson.dumps(body), content_type="application/json")
