"""What routes look like in the text of a file, by framework.

A route is read from a line, and the name of what serves it from there or from below a decorator.
What a class or a block of lines puts before its routes is added; `route_mounts` has the rest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import re2

from apps.code.values import words

QUOTED = r"[rbuf]{0,2}[\"'`](?P<path>[^\"'`\n]{0,200})[\"'`]"
_METHODS = "get|post|put|patch|delete|head|options|all|any|route|websocket"


@dataclass(frozen=True)
class Framework:
    """How files of some languages declare routes."""

    languages: frozenset[str]
    route: str  # with the groups path, and maybe method and handler
    words: tuple[str, ...] = ()  # a file has one of these, in this case
    prefix: str = ""  # of the routes of a class, with the group path
    routers: str = ""  # what makes one, with the group router, if others have names of ROUTERS
    block: str = ""  # what begins a block whose routes have a prefix, with the group path
    only_in: str = ""  # the end of the path of the file


ROUTERS = re2.compile(r"app|router|server|api|fastify|routes?|\w+Router")
JAVASCRIPT = words("javascript typescript tsx jsx vue svelte astro")
_RAILS = (
    r"^\s*(?:namespace|scope|(?P<resources>resources?))\b\s*\(?\s*(?:path:\s*)?[:\"'](?P<path>[/\w:.-]{1,200})"
    r".*\bdo\b"
)
FRAMEWORKS = (
    # Django and its REST framework
    Framework(
        words("python"),
        rf"\b(?:re_path|path|url)\(\s*{QUOTED}\s*,\s*(?P<handler>[\w.]+)",
        ("urlpatterns", "urls"),
    ),
    Framework(
        words("python"),
        rf"\b(?P<router>\w+)\.register\(\s*{QUOTED}\s*,\s*(?P<handler>[\w.]+)",
        ("DefaultRouter", "SimpleRouter", "routers"),
    ),
    # Flask, FastAPI, Starlette, aiohttp
    Framework(
        words("python"),
        rf"^\s*@(?:\w+\.)*(?P<router>\w+)\.(?P<method>{_METHODS})\(\s*{QUOTED}",
        ("Flask", "Blueprint", "FastAPI", "APIRouter", "RouteTableDef", "app", "bp", "router"),
    ),
    Framework(
        words("python"),
        rf"\b(?:add_url_rule|Route|WebSocketRoute|Mount|add_route|add_api_route|add_get|add_post)"
        rf"\(\s*{QUOTED}(?:\s*,\s*(?:endpoint\s*=\s*)?(?P<handler>[\w.]+))?",
        ("add_url_rule", "Route", "add_route", "add_api_route", "add_get", "add_post"),
    ),
    # Express, Koa, Fastify, Hono
    Framework(
        JAVASCRIPT,
        rf"\b(?P<router>\w+)\.(?P<method>{_METHODS}|use)"
        rf"\(\s*[\"'`](?P<path>/[^\"'`\n]{{0,200}})[\"'`]\s*,(?P<arguments>.*)",
        routers=r"\b(?P<router>\w+)\s*(?::[^=\n]{0,80})?=\s*(?:new\s+)?"
        r"(?:[\w.]+(?:\([^()\n]*\))?\.)?\w*Router\(",
    ),
    # NestJS
    Framework(
        words("typescript"),
        r"^\s*@(?P<method>Get|Post|Put|Patch|Delete|All)\(\s*"
        r"(?:[\"'`](?P<path>[^\"'`\n]{0,200})[\"'`])?",
        ("Controller",),
        prefix=rf"@Controller\(\s*{QUOTED}",
    ),
    # Spring
    Framework(
        words("java kotlin"),
        r"^\s*@(?P<method>Get|Post|Put|Patch|Delete|Request)Mapping\b"
        r"(?:\([^\"\n]{0,80}\"(?P<path>[^\"\n]{0,200})\")?",
        prefix=rf"@RequestMapping\([^\"\n]{{0,80}}{QUOTED}",
    ),
    # JAX-RS
    Framework(
        words("java kotlin"),
        rf"^\s*@Path\(\s*{QUOTED}\s*\)\s*$",
        prefix=rf"@Path\(\s*{QUOTED}",
    ),
    # Ktor
    Framework(
        words("kotlin"),
        rf"^\s*(?P<method>get|post|put|patch|delete)\({QUOTED}\)\s*\{{",
        ("routing", "route", "Route"),
    ),
    # Rails, Sinatra, Laravel
    Framework(
        words("ruby"),
        rf"^\s*(?P<method>get|post|put|patch|delete|match|root|mount)\s*\(?\s*{QUOTED}"
        r"(?:\s*(?:=>|,\s*to:|,\s*controller:)\s*[\"'](?P<handler>[\w/#]+)[\"'])?",
        block=_RAILS,
    ),
    Framework(
        words("ruby"),
        r"^\s*(?P<method>resources?|get|post|put|patch|delete)\s*\(?\s*:(?P<path>\w+)",
        only_in="routes.rb",
        block=_RAILS,
    ),
    Framework(
        words("php"),
        rf"\bRoute::(?P<method>get|post|put|patch|delete|any|match|resource|apiResource)"
        rf"\(\s*{QUOTED}\s*,\s*\[?(?P<handler>[\w\\]+)?",
    ),
    # Go: net/http, gin, chi, echo, mux
    Framework(
        words("go"),
        r"\b(?P<router>\w+)\.(?P<method>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|Any|Get|Post|Put|Patch|Delete|"
        r"Handle|HandleFunc|Route|Mount|Group)\(\s*[\"`](?P<path>[^\"`\n]{0,200})[\"`]"
        r"(?:\s*,\s*(?P<handler>[\w.]+))?",
    ),
    # axum, actix, Rocket
    Framework(
        words("rust"),
        r"\.route\(\s*\"(?P<path>[^\"\n]{0,200})\"\s*,\s*"
        r"(?:\w+::)*(?P<method>get|post|put|patch|delete|any)?\(?\s*(?P<handler>[\w:]+)?",
    ),
    Framework(
        words("rust"),
        r"^\s*#\[(?P<method>get|post|put|patch|delete|head|options)\(\s*\"(?P<path>[^\"\n]{0,200})\"",
    ),
    # ASP.NET
    Framework(
        words("csharp"),
        r"\.Map(?P<method>Get|Post|Put|Patch|Delete)\(\s*\"(?P<path>[^\"\n]{0,200})\"",
    ),
    Framework(
        words("csharp"),
        r"^\s*\[Http(?P<method>Get|Post|Put|Patch|Delete)(?:\(\s*\"(?P<path>[^\"\n]{0,200})\")?",
        prefix=r"\[Route\(\s*\"(?P<path>[^\"\n]{0,200})\"",
    ),
    # Phoenix
    Framework(
        words("elixir"),
        r"^\s*(?P<method>get|post|put|patch|delete|live|resources)\s*\(?\"(?P<path>[^\"\n]{0,200})\""
        r"\s*,\s*(?P<handler>[\w.]+)",
        only_in="router.ex",
    ),
)
# Words of which a file with routes has one: in the order in which they are looked up.
HINTS = tuple(
    word
    for line in (
        "urlpatterns add_url_rule Blueprint Flask FastAPI APIRouter RouteTableDef Route add_route",
        "DefaultRouter SimpleRouter express Router fastify Hono Koa Controller GetMapping",
        "PostMapping RequestMapping PutMapping DeleteMapping routing HandleFunc Handle GET POST",
        "ServeMux chi gin axum actix_web rocket MapGet MapPost HttpGet HttpPost routes draw",
        "resources pipe_through app router",
    )
    for word in line.split()
)


@dataclass(frozen=True)
class TextRoute:
    """A route as the text of a file has it."""

    row: int  # 0-based
    method: str  # in capitals; "" if it is not said
    path: str  # as it is written, after the prefix of its class or block
    handler: str  # a name; "" if it is not said
    router: str = ""  # the name of what has it; "" if it is not said
    is_quoted: bool = False  # in a string of several lines, as an example in a docstring is


_RESOURCES = ("RESOURCE", "RESOURCES")
_MANY = words("ROUTE ALL ANY USE HANDLE HANDLEFUNC MATCH REQUEST RESOURCE RESOURCES")
# One method: a route of several is found by any.
_METHODS_OF = re2.compile(
    r"method(?:s\s*=\s*[\[({]\s*[\"'](\w{3,7})[\"']\s*,?\s*[\])}]|\s*=\s*RequestMethod\.(\w{3,7}))"
)
_OF_JAX = re2.compile(r"^\s*@(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b")
_CLASS = re2.compile(r"(?:^|\s)(?:class|interface|object|record)\s+\w")
_NAME_BELOW = re2.compile(
    r"^\s*(?:(?:pub|async|export|public|private|protected|internal|static|override|suspend|fun|def"
    r"|fn|func|function|final|virtual)\s+)*(?:[\w<>\[\],.?]+\s+)?(?P<name>\w+)\s*\("
)
_TRIPLE = re2.compile(r"\"{3}|'{3}")
COMMENTS = ("//", "#!", "# ", "* ", "--", "/*")
MAX_LINE = 1_000
_DEF = re2.compile(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(")
_FUNCTION = re2.compile(r"=>|\bfunction\b")
_LAST_NAME = re2.compile(r"([A-Za-z_$][\w.$]*)\s*\)+\s*;?\s*$")
FAR_BELOW = 40
BELOW = 6  # lines between a decorator and its function


@cache
def _compiled(pattern: str) -> Any:
    """A pattern of a framework, compiled when it is first needed; None if it has none."""
    return re2.compile(pattern) if pattern else None


def routes_in(path: str, language: str, lines: Sequence[str]) -> Iterator[TextRoute]:
    """The routes that the lines of a file declare."""
    text_words = None
    for framework in FRAMEWORKS:
        if language not in framework.languages or not path.endswith(framework.only_in):
            continue
        if framework.words:
            if text_words is None:
                text_words = set(re.findall(r"\w+", "\n".join(lines)))
            if text_words.isdisjoint(framework.words):
                continue
        yield from _of_framework(framework, lines)


def quoted_rows(lines: Sequence[str]) -> set[int]:
    """The rows of Python that are in strings of several lines."""
    rows: set[int] = set()
    mark = ""
    for row, line in enumerate(lines):
        if mark:
            rows.add(row)
        for match in _TRIPLE.finditer(line):
            mark = "" if mark == match[0] else mark or match[0]
    return rows


def _of_framework(framework: Framework, lines: Sequence[str]) -> Iterator[TextRoute]:
    prefix, blocks = "", Blocks(_compiled(framework.block))
    prefixes = _compiled(framework.prefix)
    quoted = quoted_rows(lines) if "python" in framework.languages else set()
    made = _made(framework, lines)
    for row, line in enumerate(lines):
        if len(line) > MAX_LINE or line.lstrip().startswith(COMMENTS):
            continue
        if prefixes and (match := prefixes.search(line)) and _is_of_class(lines, row):
            prefix = match["path"]
            continue
        before = blocks.before(line) or prefix
        for route in _of_line(framework, lines, row):
            if framework.routers and not (route.router in made or ROUTERS.fullmatch(route.router)):
                continue
            yield replace(route, path=joined(before, route.path), is_quoted=row in quoted)


def _made(framework: Framework, lines: Sequence[str]) -> set[str]:
    """The names of the routers that a file makes."""
    pattern = _compiled(framework.routers)
    found = (pattern.finditer(line) for line in lines if len(line) <= MAX_LINE) if pattern else ()
    return {match["router"] for matches in found for match in matches}


def _of_line(framework: Framework, lines: Sequence[str], row: int) -> Iterator[TextRoute]:
    """The routes of a line, without what is put before them."""
    line = lines[row]
    # An argument may be on the next line.
    text = line if not line.rstrip().endswith("(") else line.rstrip() + _at(lines, row + 1)
    for match in _compiled(framework.route).finditer(text):
        groups = match.groupdict()
        method, path = _method(groups.get("method") or "", lines, row), groups["path"] or ""
        if (arguments := groups.get("arguments")) is not None:
            handler = _last_name(arguments)
        else:
            handler = groups.get("handler") or _below(line, lines, row)
        router = groups.get("router") or ""
        if "ruby" in framework.languages:
            handler = _controller(path if method in _RESOURCES else handler)
        plain = "" if method in _MANY else method
        yield TextRoute(row, plain, path, handler, router)
        if method == "RESOURCES":
            yield TextRoute(row, plain, f"{path}/:id", handler, router)


def _method(written: str, lines: Sequence[str], row: int) -> str:
    """The method of a route, in capitals: by its name, an argument, or an annotation near it."""
    if stated := _METHODS_OF.search(lines[row]):
        return str(stated[1] or stated[2]).upper()
    if not written and lines[row].lstrip().startswith("@"):  # of JAX-RS
        near = (_OF_JAX.match(lines[at]) for at in (row - 1, row + 1) if 0 <= at < len(lines))
        return next((str(match[1]) for match in near if match), "")
    return written.upper()


def _controller(handler: str) -> str:
    """`status#ping` and `status` of Rails as StatusController#ping and StatusController."""
    name, mark, action = handler.rpartition("/")[2].partition("#")
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return f"{words}Controller{mark}{action}" if name else ""


def _is_of_class(lines: Sequence[str], row: int) -> bool:
    """Whether an annotation is that of a class: what follows the annotations is one."""
    for number, line in enumerate(lines[row : row + 1 + BELOW]):
        if _CLASS.search(line):
            return True
        if number and line.strip() and not line.lstrip().startswith(("@", "[", ")", "/", "*")):
            return False
    return False


class Blocks:
    """The prefixes of the blocks that a line is in, by how far lines are indented."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern
        self._open: list[tuple[int, str]] = []  # indent, prefix

    def before(self, line: str) -> str:
        """What is put before a route of this line, the next one of a file."""
        if self._pattern is None or not line.strip():
            return ""
        indent = len(line) - len(line.lstrip())
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        prefix = self._open[-1][1] if self._open else ""
        if match := self._pattern.match(line):
            inner = joined(prefix, match["path"])
            if match["resources"] == "resources":
                inner += "/:id"
            self._open.append((indent, inner))
        return prefix


def _at(lines: Sequence[str], row: int) -> str:
    return lines[row].strip()[:300] if row < len(lines) else ""


def _last_name(arguments: str) -> str:
    """The name at the end of a call: what comes before it is middleware. "" if the last argument is
    a function, or on another line."""
    match = None if _FUNCTION.search(arguments) else _LAST_NAME.search(arguments)
    return str(match[1]) if match else ""


def _below(line: str, lines: Sequence[str], row: int) -> str:
    """The function under a decorator or attribute; "" under another line."""
    if not line.lstrip().startswith(("@", "#[", "[")):
        return ""
    if line.lstrip().startswith("@"):  # its arguments may take many lines in Python
        below = lines[row + 1 : row + 1 + FAR_BELOW]
        if match := next(filter(None, map(_DEF.match, below)), None):
            return str(match[1])
    for text in lines[row + 1 : row + 1 + BELOW]:
        if not text.lstrip().startswith(("@", "#[", "[")) and (match := _NAME_BELOW.match(text)):
            return str(match["name"])
    return ""


def joined(prefix: str, path: str) -> str:
    """A path behind a prefix, both as they are written."""
    if not prefix:
        return path
    return f"{prefix.rstrip('/')}/{path.lstrip('/')}" if path else prefix
