"""The URIs of files, `codeinfo://repository/path#L1-L9`: write them and read them.

Repository and path are percent-encoded (RFC 3986). Models and simple clients do not encode, so
everything that can be understood is read: characters that should be encoded, `#L1-9`, and a `#`
that does not begin lines as part of the name.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.core.values.surrogates import is_storable

SCHEME = "codeinfo://"
MAX_URI = 10_000
LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?")
# RFC 3986: these need no encoding in a path.
SAFE = "/~!$&'()*+,;=:@"


@dataclass(frozen=True)
class Address:
    """What a URI names: a file, or a folder if `path` is "" or ends with a slash."""

    repository: str
    path: str
    start: int | None = None  # first line, 1-based; None: the whole file
    end: int | None = None  # last line, included

    @property
    def is_folder(self) -> bool:
        return not self.path or self.path.endswith("/")


def uri_of(
    repository: str, path: str = "", start: int | None = None, end: int | None = None
) -> str:
    """The URI of a repository, a folder (`path` ends with a slash), a file or lines of it."""
    uri = f"{SCHEME}{quote(repository, safe='')}/{quote(path, safe=SAFE)}"
    if start is None:
        return uri
    last = "" if end in (None, start) else f"-L{end}"
    return f"{uri}#L{start}{last}"


def read_uri(uri: str) -> Address:
    """Raises NotFound if it cannot be the URI of a resource."""
    scheme, rest = uri[: len(SCHEME)], uri[len(SCHEME) :]
    if scheme.lower() != SCHEME or len(uri) > MAX_URI:
        raise NotFound(f"URIs begin with {SCHEME} and have at most {MAX_URI:,} characters.")
    before, mark, fragment = rest.rpartition("#")
    lines = LINES.fullmatch(fragment) if mark else None
    place = before if lines else rest.removesuffix("#")
    repository, _, path = (unquote(part) for part in place.partition("/"))
    if not repository or not is_storable(repository + path):
        raise NotFound(f"A URI is {SCHEME}repository/path#L1-L9.")
    if lines is None:
        return Address(repository, path)
    return Address(repository, path, int(lines[1]), int(lines[2] or lines[1]))


def links(output: JSON) -> list[str]:
    """The URIs of the rows of a tool's output, in order, in its compact or full form."""
    if "repos" in output:
        return [uri_of(row["id"]) for row in output["repos"]]
    rows = [output] if "relPath" in output else output.get("results", ())
    return [uri for row in rows if isinstance(row, dict) for uri in _links(row)]


def _links(row: JSON) -> list[str]:
    """The URIs of a row: one, or those of the files that it lists; none if it is of no file."""
    if "relPath" in row:
        return [_link(row)]
    if "repo" not in row:
        return []
    if isinstance(row.get("references"), dict):
        return [_link({"repo": row["repo"], "relPath": path}) for path in row["references"]]
    files = [*row.get("files", ()), *row.get("entries", ())]
    return [uri_of(row["repo"], file.partition(": ")[0]) for file in files]


def _link(row: JSON) -> str:
    start, end = row.get("startLine"), row.get("endLine")
    if lines := row.get("lines"):
        first, _, last = str(lines).partition("-")
        start, end = int(first), int(last or first)
    return uri_of(row["repo"], row["relPath"], start, end)
