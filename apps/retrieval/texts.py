"""The text of chosen candidates: from the vector store, or from their files where it is away."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from apps.ingest.models import Root, SourceFile
from apps.ingest.vectors.store import get_store
from apps.retrieval.gather import Candidate
from apps.retrieval.ingested import unchanged_lines

Texts = dict[tuple[UUID, str], str]  # by root and chunk id


def stored_texts(chosen: Sequence[Candidate]) -> Texts:
    """As they were ingested. Raises Unavailable CHROMA_UNAVAILABLE."""
    ids: dict[UUID, list[str]] = {}
    for each in chosen:
        ids.setdefault(each.root.id, []).append(each.facts.id)
    return {
        (root_id, match.id): match.text
        for root_id, of_root in get_store().get_each(ids).items()
        for match in of_root.values()
    }


def source_texts(chosen: Sequence[Candidate]) -> Texts:
    """Their lines as they are on disk. Files that are gone, or no longer those that were ingested,
    are left out: their lines would be others."""
    files = SourceFile.objects.in_bulk({each.facts.source_file for each in chosen})
    read = {
        str(file.id): lines
        for file, root in _with_roots(files.values(), chosen)
        if (lines := unchanged_lines(root, file)) is not None
    }
    return {
        (each.root.id, each.facts.id): "\n".join(
            read[each.facts.source_file][each.facts.start_line - 1 : each.facts.end_line]
        )
        for each in chosen
        if each.facts.source_file in read
    }


def _with_roots(
    files: Iterable[SourceFile], chosen: Sequence[Candidate]
) -> Iterator[tuple[SourceFile, Root]]:
    roots = {each.root.id: each.root for each in chosen}
    return ((file, roots[file.root_id]) for file in files if file.root_id in roots)
