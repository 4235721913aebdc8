"""Read a place in a file as people, compilers, editors and models write it: a path with lines."""

import os
import posixpath
import re
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from apps.core.errors import NotFound
from apps.mcp.resource_uris import SCHEME, read_uri

_RANGE = (
    r"L?(?P<first>\d{1,7})(?:C\d{1,7})?"
    r"(?:(?P<dash> ?(?:-|–|\.\.) ?)(?:L?(?P<last>\d{1,7})(?:C\d{1,7})?)?)?"
)
# What follows a path, tried in this order: the first three have columns.
_ENDS = (
    re.compile(r":(?P<first>\d{1,7}):\d{1,7}(?P<dash>-)(?P<last>\d{1,7}):\d{1,7}:?\Z"),
    re.compile(r":(?P<first>\d{1,7})[:,]\d{1,7}:?\Z"),
    re.compile(r"\((?P<first>\d{1,7})(?:, ?\d{1,7})?\):?\Z"),
    re.compile(rf"[:#]{_RANGE}:?\Z"),
    re.compile(rf"\"?,? (?:lines? |(?=L)){_RANGE}:?\Z"),
)
_LINES = re.compile(rf"(?i)(?:lines? ?)?{_RANGE}")
# What a line of a traceback begins with.
_TRACE = re.compile(r"^File \"(?=[^\"]{1,1000}\", line \d)")
_PAIRS = {"`": "`", '"': '"', "'": "'", "<": ">", "(": ")"}
_URI = re.compile(r"(?i)(?:file:(?://(?:localhost)?)?|[a-z-]{2,20}://file)(?=/)")
_DRIVE = re.compile(r"[A-Za-z]:/")
_ODD = re.compile(r"^\./|/(?:\.{0,2})/")


class Place(NamedTuple):
    """A path and lines.

    lines: "12", "12-20" or "12-"; "": all
    repository: the name under which a call may use it; "": the text does not say
    """

    path: str
    lines: str = ""
    repository: str = ""


def read_place(text: str) -> Place:
    """What a text says. An absolute path is normal, with slashes only, and without `..`."""
    text = text.strip()
    if text[:1] in _PAIRS and text.endswith(_PAIRS[text[0]]) and len(text) > 2:
        text = text[1:-1]
    if text.lower().startswith(SCHEME):
        return _resource(text)
    path, lines = _split(_TRACE.sub("", _file_of_test(text)))
    if uri := _URI.match(path):
        path = unquote(path[uri.end() :])
        # file:///C:/src
        path = path.lstrip("/") if _DRIVE.match(path.lstrip("/")) else path
    path = path.replace("\\", "/").removeprefix("@")
    path = os.path.expanduser(path) if path.startswith("~/") else path
    if is_absolute(path):
        path = normal(path) + "/" * (path.endswith("/") and path.strip("/") != "")
    elif "://" not in path and _ODD.search(path):
        path = _relative(path)
    return Place(path, lines)


def read_lines(text: str) -> str:
    """Ranges of lines as the tools take them; the text itself if it is none."""
    found = [_LINES.fullmatch(part.strip()) for part in text.split(",")]
    return ",".join(_range(match) for match in found if match) if all(found) else text


def _resource(uri: str) -> Place:
    with suppress(NotFound):
        address = read_uri(uri)
        ends = [str(line) for line in (address.start, address.end) if line]
        return Place(address.path, "-".join(ends), address.repository)
    return Place(uri)


def _file_of_test(text: str) -> str:
    """`test_a.py` of `test_a.py::TestA::test_b`, as pytest writes it."""
    file, mark, test = text.partition(".py::")
    return f"{file}.py" if mark and "/" not in test else text


def _split(text: str) -> tuple[str, str]:
    """The path of a text, and its lines."""
    place, mark, function = text.rpartition(", in ")
    if mark and "/" not in function and place[-1:].isdigit():
        text = place
    for end in _ENDS:
        if match := end.search(text):
            return text[: match.start()], _range(match)
    return text.removesuffix(":"), ""


def _range(match: "re.Match[str]") -> str:
    first, dash, last = (match.groupdict().get(name) for name in ("first", "dash", "last"))
    return f"{first}{'-' if dash else ''}{last or ''}"


def _relative(path: str) -> str:
    """A path within a repository without `.`, `..` and repeated slashes, if it stays inside."""
    found = posixpath.normpath(path)
    if found.split("/")[0] == "..":
        return path
    return ("" if found == "." else found) + "/" * (path.endswith("/") and found != ".")


def normal(path: str) -> str:
    """An absolute path without `..` and repeated slashes."""
    path = path.replace("\\", "/")
    # `normpath` keeps two slashes at the beginning.
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def is_absolute(path: str) -> bool:
    return path.startswith("/") or is_of_windows(path)


def is_of_windows(path: str) -> bool:
    """Whether a path has a drive. Windows does not tell cases apart."""
    return _DRIVE.match(path) is not None
