"""Live files: find one by its path, and read its lines as they were ingested."""

from collections.abc import Iterable, Sequence
from itertools import islice
from unicodedata import normalize
from uuid import UUID

from apps.code.chunking import lines_of
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.index import queries, unread
from apps.index.chunks import stored_texts, unchanged_texts
from apps.index.models import Root, SourceFile
from apps.index.symbols import definitions_of, outline_of
from apps.index.types import Area, StoredSymbol
from apps.retrieval.query import is_inside, listed
from apps.retrieval.repositories import is_named, repo_id

# Paths that the error about an unknown path lists.
MAX_NAMED = 5


def live_file(root: Root, path: str, areas: Sequence[Area] = ()) -> SourceFile:
    """The live row of a file.

    The path must equal one that an ingest wrote, so `..` and absolute paths never reach the disk.
    `repo/path` is read as `path` if there is no other file.
    Raises NotFound FILE_NOT_FOUND; the message lists files with the same name. Raises InvalidInput
    FORBIDDEN_PATH if the file is in none of the areas.
    """
    files = queries.live_files(root).ingested()
    row = files.filter(path__in=_forms(path)).first()
    first, _, rest = path.partition("/")
    if row is None and is_named(root, first):
        row = files.filter(path__in=_forms(rest)).first()
    if row is None:
        text = f"{path} is not among the ingested files of {repo_id(root)}."
        name = path.rpartition("/")[2]
        paths = files.filter(path__endswith=f"/{name}").values_list("path", flat=True).iterator()
        alike = list(islice((other for other in paths if is_inside(areas, root, other)), MAX_NAMED))
        hint = f" There is {', '.join(alike)}." if name and alike else ""
        raise NotFound(text + hint, code="FILE_NOT_FOUND")
    if not is_inside(areas, root, row.path):
        text = f"{row.path} may not be looked into here; these may: {listed(areas)}"
        raise InvalidInput(text, code="FORBIDDEN_PATH")
    return row


def _forms(path: str) -> list[str]:
    """The path in both normal forms of Unicode: macOS writes names in NFD."""
    return list(dict.fromkeys([path, normalize("NFC", path), normalize("NFD", path)]))


def ingested_lines(files: Iterable[tuple[Root, str]]) -> dict[str, list[str]]:
    """The lines of files as they were ingested, by `SourceFile.document`. `files` are pairs of root
    and document.

    Lines come from the text store, otherwise from the disk if the file is unchanged. Files that
    have neither are left out: they are noted (`unread`), unless they are not live any more.
    """
    roots: dict[str, dict[UUID, Root]] = {}
    for root, document in files:
        roots.setdefault(document, {})[root.id] = root
    rows = SourceFile.objects.filter(document__in=list(roots)).order_by()
    # Rows of one document have one text, but only one of their folders may still have it.
    pairs = [
        (root, row)
        for row in rows
        for root in [roots[str(row.document)].get(row.root_id or row.id)]
        if root is not None
    ]
    texts = stored_texts({row.sha256 for _, row in pairs})
    texts |= unchanged_texts(
        (root, row.path, row.sha256) for root, row in pairs if row.sha256 not in texts
    )
    for root, row in pairs:
        if row.sha256 not in texts:
            unread.text_lost(root, str(row.document))
    return {
        str(row.document): lines_of(texts[row.sha256]) for _, row in pairs if row.sha256 in texts
    }


def lines_of_file(root: Root, file: SourceFile) -> list[str]:
    """The lines of one file. Raises Unavailable TEXT_LOST."""
    lines = ingested_lines([(root, str(file.document))]).get(str(file.document))
    if lines is None:
        message = f"The text of {file.path} is not stored, and the file on disk is another one."
        raise Unavailable(f"{message} Ingest the repository again.", code="TEXT_LOST")
    return lines


def stored_lines(file: SourceFile) -> list[str] | None:
    """The lines as they were ingested, from the text store; None if it lacks them."""
    text = stored_texts({file.sha256}).get(file.sha256)
    return None if text is None else lines_of(text)


def known_outline(root: Root, document: UUID | str) -> list[StoredSymbol]:
    """The definitions in a file, by line; none if they cannot be read, which `unread` notes."""
    try:
        return outline_of(root, document)
    except Unavailable:
        return []


def known_definitions(root: Root, name: str) -> list[StoredSymbol]:
    """The definitions of a name; none if they cannot be read, which `unread` notes."""
    try:
        return definitions_of(root, name)
    except Unavailable:
        return []
