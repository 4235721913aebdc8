"""Word indexes that were lost or broken come back from the texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import Unavailable
from apps.index import queries
from apps.index.lexical import LexicalStore, SegmentWriter, get_lexical, words
from apps.index.models import IngestRun, Root
from apps.index.parsing import Chunker
from apps.index.parsing.process import ProcessEnded
from apps.index.texts import TextStore, get_texts
from apps.index.vectors.collections import Collections
from apps.index.vectors.store import get_store
from apps.ingest import services
from apps.ingest.runs import queue, reindex, sweep
from tests.ingest.stages import Nth, hook
from tests.support.damage import spoil
from tests.support.ingested import ingest, outdate, run_ingest, write_files

pytestmark = pytest.mark.door

QUESTION = list(words("seconds to wait before an attempt"))


def never() -> bool:
    return False


def answers(root: Root) -> Any:
    return get_lexical().search(root.id, QUESTION, 50)


def outlines(root: Root) -> dict[str, list[str]]:
    files = queries.live_files(root).ingested()
    return {f.path: [s.path for s in get_lexical().outline(root.id, f.id)] for f in files}


def lose(root: Root) -> None:
    get_lexical().drop(root.id)


def break_it(root: Root) -> None:
    spoil(get_lexical()._files.path(root.id))


def forget_a_file(root: Root) -> None:
    get_lexical().delete_files(root.id, [queries.live_files(root).ingested()[0].id])


@pytest.mark.fault("The server is killed during an ingest", "The word index is lost")
@pytest.mark.django_db
@pytest.mark.parametrize("harm", [lose, break_it, forget_a_file])
def test_an_index_that_was_harmed_is_built_again_as_it_was(
    repo: Path, store: Any, harm: Callable[[Root], None]
) -> None:
    root = ingest(repo)
    assert reindex.roots_needing_rebuild() == []
    before, outline = {hit.id: hit.score for hit in answers(root)}, outlines(root)
    facts = get_lexical().facts(root.id, before)
    assert "RetryPolicy.should_retry" in outline["src/retry.py"]
    harm(root)
    assert reindex.roots_needing_rebuild() == [root]
    reindex.rebuild(root, stop=never)
    assert reindex.roots_needing_rebuild() == []
    assert {hit.id: hit.score for hit in answers(root)} == before
    assert get_lexical().facts(root.id, before) == facts
    assert outlines(root) == outline
    assert get_lexical().ids(root.id) == get_store().ids(root.id)


@pytest.mark.django_db
def test_an_index_is_built_again_from_what_was_ingested(repo: Path, store: Any) -> None:
    root = ingest(repo)
    before, outline = {hit.id: hit.score for hit in answers(root)}, outlines(root)
    lose(root)
    write_files(repo, {"src/retry.py": "def other() -> None: ...\n"})
    (repo / "README.md").unlink()
    reindex.rebuild(root, stop=never)
    assert {hit.id: hit.score for hit in answers(root)} == before
    assert outlines(root) == outline


@pytest.mark.django_db
def test_chunks_that_were_cut_otherwise_are_built_again_with_their_words(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their file could not be parsed when it was ingested."""
    with monkeypatch.context() as patch:
        patch.setattr("apps.code.chunking.MAX_CHARS", 1_500)
        patch.setattr("apps.index.parsing.chunker.MAX_CHARS", 1_500)
        patch.setattr(Chunker, "_cut", _fail_to_parse)
        root = ingest(repo)
    ids, found = get_lexical().ids(root.id), [hit.id for hit in answers(root)]
    lose(root)
    reindex.rebuild(root, stop=never)
    assert get_lexical().ids(root.id) == ids
    assert [hit.id for hit in answers(root)] == found


def _fail_to_parse(chunker: Chunker, process: Any, sources: Any) -> Any:
    raise ProcessEnded


@pytest.mark.django_db
def test_an_index_without_texts_stays_as_it_is(repo: Path, store: Any) -> None:
    root = ingest(repo)
    get_texts().collect(lambda keys: ())
    with pytest.raises(Unavailable, match="texts are missing"):
        reindex.rebuild(root, stop=never)
    assert get_lexical().count(root.id) == root.chunks


@pytest.mark.django_db
def test_a_run_that_waits_goes_first(repo: Path, store: Any) -> None:
    root = ingest(repo)
    lose(root)
    with pytest.raises(reindex.Interrupted):
        reindex.rebuild(root, stop=lambda: True)
    assert reindex.roots_needing_rebuild() == [root]
    assert answers(root) == []


@pytest.mark.django_db
def test_a_root_under_way_or_removed_meanwhile_is_not_built(repo: Path, store: Any) -> None:
    root = ingest(repo)
    lose(root)
    run = IngestRun.objects.create(
        operation="reembed", path=root.path, name=root.name, state="embedding"
    )
    assert reindex.roots_needing_rebuild() == []
    run.delete()
    Root.objects.all().delete()
    reindex.rebuild(root, stop=never)
    assert get_lexical().roots() == set()


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
def test_the_worker_mends_at_its_start(repo: Path, store: Any) -> None:
    root = ingest(repo)
    before = {hit.id for hit in answers(root)}
    break_it(root)
    worker = queue.Worker()
    sweep.due.set()
    assert worker.turn() is True
    assert {hit.id for hit in answers(root)} == before
    assert worker.turn() is False


@pytest.mark.django_db(transaction=True)
def test_the_worker_reports_an_unavailable_store_and_continues(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = ingest(repo)
    lose(root)
    worker = queue.Worker()
    worker._to_rebuild = [root]

    def away(*args: object) -> None:
        raise Unavailable("Chroma failed: down", code="CHROMA_UNAVAILABLE")

    monkeypatch.setattr(TextStore, "read", away)
    sweep.due.clear()
    assert worker.turn() is True
    assert "word index not built again" in caplog.text
    assert worker.turn() is False


@pytest.mark.django_db
def test_a_run_of_a_root_without_words_brings_them(repo: Path, store: Any) -> None:
    root = ingest(repo)
    lose(root)
    root = ingest(repo)
    assert get_lexical().ids(root.id) == get_store().ids(root.id)
    assert len(get_lexical().ids(root.id)) == root.chunks


@pytest.mark.django_db
def test_a_broken_word_index_does_not_stop_a_run(repo: Path, store: Any) -> None:
    root = ingest(repo)
    break_it(root)
    root = ingest(repo)
    assert get_lexical().ids(root.id) == get_store().ids(root.id)


@pytest.mark.fault("The disk is full")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("owner", "verb"),
    [(SegmentWriter, "add"), (SegmentWriter, "flush"), (LexicalStore, "add_symbols")],
)
def test_words_that_cannot_be_written_fail_the_run_and_the_old_answers_stay(
    repo: Path,
    store: Any,
    contents: Callable[[Root], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    verb: str,
) -> None:
    root = ingest(repo)
    outdate(root)
    before, words_before = contents(root), answers(root)

    def full(*args: object) -> None:
        raise Unavailable("The word index failed: database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(owner, verb, full)
        run = run_ingest(repo)
    assert (run.state, run.error_code) == ("error", "DISK_FULL")
    assert "The word index failed: database or disk is full" in run.last_error
    assert contents(root) == before
    assert answers(root) == words_before
    assert get_lexical().ids(root.id) == get_store().ids(root.id)
    assert ingest(repo).generation == 2


@pytest.mark.django_db
def test_removing_a_root_removes_its_words_even_while_chroma_is_away(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)

    def away(*args: object) -> None:
        raise Unavailable("Chroma failed: down", code="CHROMA_UNAVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "drop", away)
        with pytest.raises(Unavailable):
            services.remove(root.path)
    assert get_lexical().roots() == set()
    sweep.sweep()
    assert not store.collections()


@pytest.mark.django_db
def test_words_of_a_removed_root_are_dropped(repo: Path, store: Any) -> None:
    ingest(repo)
    Root.objects.all().delete()
    sweep.sweep()
    assert get_lexical().roots() == set()


@pytest.mark.django_db
def test_until_it_publishes_a_run_leaves_the_words_of_the_last_one(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    outdate(root)
    live = {hit.id for hit in answers(root)}
    words_during: list[set[str]] = []
    hook(
        "publishing",
        Nth(1, lambda: words_during.append({h.id for h in answers(root)})),
        monkeypatch.setattr,
    )
    ingest(repo)
    # Both generations are there, and the rows say which counts.
    assert live < words_during[0]
    assert not live & {hit.id for hit in answers(root)}


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.django_db
def test_a_sweep_that_the_vector_store_refuses_costs_no_rebuild(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Chroma server whose disk is read-only: it answers, and deletes nothing."""
    root = ingest(repo)

    with monkeypatch.context() as patch:
        patch.setattr(type(store._client._client), "call", _refusing_deletes(store))
        write_files(repo, {"src/retry.py": "def later():\n    return 2\n"})
        run_ingest(repo)
        root.refresh_from_db()
        for _ in range(2):
            with pytest.raises(Unavailable, match="readonly"):
                sweep.sweep()
            assert reindex.roots_needing_rebuild() == []
    sweep.sweep()
    assert reindex.roots_needing_rebuild() == []
    assert get_lexical().count(root.id) == store.count(root.id) == root.embedded


def _refusing_deletes(store: Any) -> Callable[..., Any]:
    original_call = type(store._client._client).call

    def call(self: Any, verb: Any, *args: Any, **options: Any) -> Any:
        if verb is Collections.delete:
            raise Unavailable("Chroma failed: attempt to write a readonly database")
        return original_call(self, verb, *args, **options)

    return call
