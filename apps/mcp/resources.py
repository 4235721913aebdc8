"""The resources of `/mcp`: ingested repositories, their folders and files, and lines of these.

The list has one resource for each repository, as an index can have more files than a list is good
for. A repository or folder is a list of URIs, and the template names any file. Files are read by
the rules of the source viewer (apps/browse/source.py): live ones only, as they are on the disk,
or as they were ingested if the disk has them no more.
"""

from collections.abc import Sequence

from django.core.signing import BadSignature, Signer

from apps.browse.source import SourceText, read_source
from apps.browse.source_request import SourceRequest
from apps.core.concurrency.computed import in_thread
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.types import JSON
from apps.core.values.times import wire_time
from apps.index import changes, queries
from apps.index.models import Root
from apps.mcp.completion import PATH, REPOSITORY, complete_path, complete_repository
from apps.mcp.resource_uris import SCHEME, Address, read_uri, uri_of
from apps.mcp.types import McpResources, ResourcePage, ResourceTemplate
from apps.retrieval.query import invalid
from apps.retrieval.repositories import find_root, repo_id

PAGE_SIZE = 100
MAX_ENTRIES = 1_000
URI_LIST, PLAIN = "text/uri-list", "text/plain"
# By language. Others have none that is registered: text/x-python.
MIME_TYPES = {
    "": PLAIN,
    "text": PLAIN,
    "css": "text/css",
    "html": "text/html",
    "json": "application/json",
    "markdown": "text/markdown",
    "xml": "application/xml",
}

_signer = Signer(salt="apps.mcp.resources")


async def page(cursor: str | None) -> ResourcePage:
    """The repositories after the one that the cursor names, by id. Raises InvalidInput."""
    return await in_thread(_page, cursor)


async def read(uri: str) -> Sequence[JSON]:
    """The contents of a resource: its text, or as much as fits, and a note if that is not all.

    Raises NotFound if there is none, and InvalidInput for lines that the file does not have.
    """
    return await in_thread(contents_of, read_uri(uri))


async def version() -> object:
    """The ids of the repositories, which are the list."""
    return await in_thread(lambda: sorted(map(repo_id, queries.published_roots())))


# --- the list -------------------------------------------------------------------------------------


def _page(cursor: str | None) -> ResourcePage:
    after = "" if cursor is None else _position(cursor)
    # Of repositories with the same id, the last ingested, as in `find_root`.
    roots = {repo_id(root): root for root in reversed(queries.published_roots())}
    ids = sorted(name for name in roots if name > after)
    shown = ids[:PAGE_SIZE]
    following = _signer.sign_object(shown[-1]) if len(ids) > PAGE_SIZE else None
    return ResourcePage([_repository(name, roots[name]) for name in shown], following)


def _position(cursor: str) -> str:
    try:
        return str(_signer.unsign_object(cursor))
    except (BadSignature, ValueError):
        raise InvalidInput("This cursor is not one of ours.") from None


def _repository(name: str, root: Root) -> JSON:
    files = f"{root.files:,} file{'' if root.files == 1 else 's'}"
    described = f"{root.description.strip()} ({files})" if root.description.strip() else files
    wire: JSON = {
        "uri": uri_of(name),
        "name": name,
        "title": name,
        "description": described,
        "mimeType": URI_LIST,
    }
    if root.last_ingest_at:
        wire["annotations"] = {"lastModified": wire_time(root.last_ingest_at)}
    return wire


# --- reading --------------------------------------------------------------------------------------


def contents_of(address: Address) -> list[JSON]:
    """Raises NotFound and InvalidInput. Reads the database and the disk."""
    if address.is_folder:
        return _folder(address)
    if address.start == 0:
        raise InvalidInput("The first line of a file is 1.")
    fields = {"repo": address.repository, "path": address.path}
    request = SourceRequest.parse(fields | {"start": address.start, "end": address.end})
    try:
        return _file(request, read_source(request))
    except NotFound as error:
        try:
            return _folder(Address(address.repository, f"{address.path}/"))
        except NotFound:
            raise error from None


def _folder(address: Address) -> list[JSON]:
    """The URIs of the files and folders directly in a folder, sorted."""
    root = find_root(address.repository)
    prefix = address.path
    # SQLite compares without regard to case.
    files = queries.live_files(root).ingested().filter(path__startswith=prefix)
    paths = files.values_list("path", flat=True).iterator()
    names = sorted({_entry(path[len(prefix) :]) for path in paths if path.startswith(prefix)})
    if not names and prefix:
        raise NotFound(f"{prefix} has no ingested files.", code="FILE_NOT_FOUND")
    uri = uri_of(repo_id(root), prefix)
    left_out = len(names) - MAX_ENTRIES
    note = f"# {left_out:,} more are left out: name one of them.\r\n" if left_out > 0 else ""
    lines = "".join(f"{uri_of(repo_id(root), prefix + name)}\r\n" for name in names[:MAX_ENTRIES])
    return [{"uri": uri, "mimeType": URI_LIST, "text": lines + note}]


def _entry(path: str) -> str:
    """The first name of a path, with a slash if it is a folder."""
    name, slash, _ = path.partition("/")
    return name + slash


def _file(request: SourceRequest, text: SourceText) -> list[JSON]:
    lines, first, last, notes = _selected(request, text)
    shown = _fitting(lines[first - 1 : last])
    whole = request.start is None and len(shown) == len(lines)
    repository, path = repo_id(text.root), text.row.path
    end = first + len(shown) - 1
    uri = uri_of(repository, path) if whole else uri_of(repository, path, first, end)
    joined = "\n".join(shown)
    limit = config().tool_max_chars
    if len(joined) > limit:
        joined = joined[:limit]
        notes.append(f"Line {first} is longer than {limit:,} characters, and cut.")
    if end < last:
        following = uri_of(repository, path, end + 1, last)
        notes.append(
            f"These are lines {first} to {end} of {len(lines):,}. The next ones are {following}"
        )
    mime_type = MIME_TYPES.get(text.row.language, f"text/x-{text.row.language}")
    content = {"uri": uri, "mimeType": mime_type, "text": joined}
    note = {"uri": uri, "mimeType": PLAIN, "text": " ".join(notes)}
    return [content, note] if notes else [content]


def _selected(request: SourceRequest, text: SourceText) -> tuple[list[str], int, int, list[str]]:
    """All lines, the first and last that are requested, and notes on what has changed since.

    Raises InvalidInput if the file does not have the first.
    """
    lines, notes = text.lines, [f"As ingested: {text.problem}."] if text.problem else []
    if request.start is None:
        return lines, 1, len(lines), notes
    first, last = request.start + text.shift, (request.end or request.start) + text.shift
    if text.stored is not None and request.start <= len(text.stored):
        lines = text.stored
        notes.append("As ingested: the file has changed, and has these lines no more.")
    elif text.shift:
        down = f"{'down' if text.shift > 0 else 'up'} by {abs(text.shift)}"
        notes.append(f"The file has changed: these lines have moved {down} since the ingest.")
    if first > len(lines):
        raise invalid(f"{text.row.path} has {len(lines):,} lines.")
    return lines, first, min(last, len(lines)), notes


def _fitting(lines: Sequence[str]) -> list[str]:
    """The first lines that have at most CODEINFO_TOOL_MAX_CHARS characters; at least one."""
    room = config().tool_max_chars
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line)
    return shown


RESOURCES = McpResources(
    page=page,
    read=read,
    topic=changes.ROOTS,
    version=version,
    templates=(
        ResourceTemplate(
            uri_template=f"{SCHEME}{{repository}}/{{+path}}",
            name="file",
            title="File",
            description=(
                "A file of an ingested repository, such as codeinfo://acme/src/a.py, or a folder: "
                "codeinfo://acme/src/. #L10-L20 after the path reads only these lines."
            ),
            completers={REPOSITORY: complete_repository, PATH: complete_path},
        ),
        ResourceTemplate(
            uri_template=f"{SCHEME}{{repository}}/{{+path}}#L{{start}}-L{{end}}",
            name="lines",
            title="Lines of a file",
            description="Lines of a file, both included. The first line of a file is 1.",
            completers={REPOSITORY: complete_repository, PATH: complete_path},
        ),
    ),
)
