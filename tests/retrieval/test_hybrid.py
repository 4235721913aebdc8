"""Mode `hybrid` over HTTP: both kinds of candidates, damaged parts, filters."""

import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from apps import retrieval
from apps.code.values import Chunk
from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.queries import generation_files
from apps.index.types import ChunkRecord
from apps.retrieval import gather
from apps.retrieval.query import LANGUAGES, SearchQuery
from apps.retrieval.search import search
from tests.retrieval.conftest import MODEL, Ask, record_of, save_text
from tests.support.parts import list_chunks, lose_parts

pytestmark = pytest.mark.django_db

SEARCH = "/tools/vector-search"
AWAY = Unavailable("it is away", code="EMBEDDER_UNAVAILABLE")


@dataclass
class Stage:
    """Published roots with files on disk, and parts in which the test sets the distance of each
    chunk. It is the embedder, and for mode `vector` Chroma; everything else is real."""

    folder: Path
    # By root: the chunks with their distances.
    chunks: dict[uuid.UUID, list[tuple[SourceFile, ChunkRecord, float]]] = field(
        default_factory=dict
    )
    away: Unavailable | None = None
    embedder_fails: Unavailable | None = None

    def root(self, name: str = "repo") -> Root:
        root, _ = Root.objects.get_or_create(
            name=name,
            defaults={
                "path": str(self.folder / name),
                "model": MODEL,
                "generation": 1,
                "last_ingest_at": timezone.now(),
            },
        )
        self.chunks.setdefault(root.id, [])
        return root

    def put(
        self,
        path: str,
        text: str,
        distance: float,
        *,
        repo: str = "repo",
        names: str = "",
        language: str = "python",
        since: int = 1,
        until: int | None = None,
    ) -> SourceFile:
        """A file of one chunk."""
        root = self.root(repo)
        run = IngestRun.objects.create(
            root=root, operation="start", path=root.path, name=repo, model=MODEL
        )
        on_disk = self.folder / repo / path
        on_disk.parent.mkdir(parents=True, exist_ok=True)
        on_disk.write_text(text)
        file = SourceFile(root=root, run=run, path=path, since=since, until=until)
        chunk = Chunk(text, 1, text.count("\n") + 1, names=tuple(names.split()))
        record = record_of(save_text(file, text, [chunk], language), chunk)
        self.chunks[root.id].append((file, record, distance))
        self.publish(repo)
        return file

    def publish(self, repo: str = "repo", generation: int = 1) -> None:
        """List the chunks of the files that are live in a generation."""
        Root.objects.filter(name=repo).update(generation=generation)
        root = Root.objects.get(name=repo)
        live = set(generation_files(root).values_list("document", flat=True))
        chunks = [row for row in self.chunks[root.id] if row[0].document in live]
        cosines = np.array([1 - distance / 2 for _, _, distance in chunks], np.float32)
        units = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
        list_chunks(root, [(file, record) for file, record, _ in chunks], units)

    # --- what stands in for Chroma ---

    def nearest(self, root_id: uuid.UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
        if self.away:
            raise self.away
        rows = [(record.id, distance) for _, record, distance in self.chunks[root_id]]
        return sorted(rows, key=lambda row: row[1])[:n]

    # --- the verb of an Embedder ---

    def embed_query(self, text: str) -> Vectors:
        if self.embedder_fails:
            raise self.embedder_fails
        return np.array([1.0, 0.0], dtype=np.float32)


@pytest.fixture
def stage(db: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    IndexLock.objects.create(model=MODEL, dimension=2)
    made = Stage(folder)
    monkeypatch.setattr("apps.retrieval.nearest.store.nearest", made.nearest)
    monkeypatch.setattr("apps.retrieval.nearest.of_stores", dict)
    monkeypatch.setattr("apps.retrieval.search.get_embedder", lambda model_id: made)
    return made


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Take so few candidates of each side that a small stage has more."""
    monkeypatch.setattr(gather, "WIDTH", width)
    monkeypatch.setattr(gather, "ENOUGH", 1)


def paths(answer: dict) -> list[str]:
    return [result["relPath"] for result in answer["results"]]


def error_of(client: Client, **body: object) -> tuple[int, str]:
    response = client.post(SEARCH, {"query": "x", **body}, content_type="application/json")
    return response.status_code, response.json()["error"]


# --- both sides -----------------------------------------------------------------------------------


def test_each_match_has_its_source_and_its_distance(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 2)
    stage.put("both.py", "def retry(): backoff", 0.2)
    stage.put("near.py", "def again(): wait", 0.3)
    stage.put("words.py", "retry with backoff", 1.7)
    for i in range(4):
        stage.put(f"other{i}.py", "nothing of the kind", 1.0)
    found = ask(query="backoff retry")["results"]
    assert {r["relPath"]: (r["matchedBy"], round(r["score"], 4)) for r in found} == {
        "both.py": ("both", 0.2),
        "near.py": ("vector", 0.3),
        "words.py": ("words", 1.7),
    }


def test_words_raise_a_match_above_a_nearer_one(stage: Stage, ask: Ask, configure) -> None:
    stage.put("a.py", "def wait(): pass", 0.50)
    stage.put("b.py", "class ExponentialBackoff: pass", 0.52, names="ExponentialBackoff")
    stage.put("c.py", "nothing of the kind", 1.2)
    assert paths(ask(query="ExponentialBackoff"))[0] == "b.py"
    configure(retrieval_mode="vector")
    assert paths(ask(query="ExponentialBackoff"))[0] == "a.py"


def test_the_cutoff_drops_distant_matches_without_evidence(stage: Stage, ask: Ask) -> None:
    stage.put("near.py", "alpha", 0.5)
    stage.put("far.py", "beta", 1.6)
    stage.put("far_words.py", "backoff", 1.6)
    assert set(paths(ask(query="backoff"))) == {"near.py", "far_words.py"}


@pytest.mark.parametrize(
    ("cutoff", "expected"),
    [
        (1.4, {"near.py", "words0.py", "words1.py", "words2.py", "words3.py"}),
        (1.3, {"near.py", "words0.py", "words1.py"}),
        (0.8, {"near.py", "words0.py"}),
        (0.4, {"near.py"}),
        (0.0, {"near.py", "words0.py"}),  # the fallback
    ],
)
def test_words_are_evidence_a_little_beyond_a_lowered_cutoff_only(
    stage: Stage, ask: Ask, configure, cutoff: float, expected: set[str]
) -> None:
    configure(retrieval_cutoff=cutoff)
    stage.put("near.py", "backoff", 0.35)
    for number, distance in enumerate((1.0, 1.4, 1.69, 1.8)):
        stage.put(f"words{number}.py", f"backoff {number}", distance)
    results = ask(query="backoff", limit=20)["results"]
    assert {result["relPath"] for result in results} == expected
    assert all(("weak" in result) == (cutoff == 0) for result in results)


def test_if_nothing_passes_the_fallback_is_the_nearest_first(stage: Stage, ask: Ask) -> None:
    # The ranking lowers the test, but nothing fits: then the distance alone says what is best.
    stage.put("src/c.py", "gamma", 1.60)
    stage.put("src/b.py", "beta", 1.55)
    stage.put("tests/test_a.py", "alpha", 1.50)
    assert paths(ask(query="quokka")) == ["tests/test_a.py", "src/b.py"]


def test_the_limit_counts_after_ranking(stage: Stage, ask: Ask) -> None:
    for i in range(6):
        stage.put(f"tests/test_{i}.py", "backoff", 0.30 + i / 100)
    stage.put("src/backoff.py", "backoff", 0.4, names="backoff")
    assert paths(ask(query="backoff", limit=1)) == ["src/backoff.py"]


# --- what is live ---------------------------------------------------------------------------------


def test_chunks_of_files_that_are_not_live_are_dropped(stage: Stage, ask: Ask) -> None:
    stage.put("live.py", "backoff", 0.5)
    stage.put("unpublished.py", "backoff", 0.1, since=2)
    stage.put("replaced.py", "backoff", 0.1, until=1)
    assert paths(ask(query="backoff")) == ["live.py"]


@pytest.mark.door
def test_a_file_published_between_two_searches_is_found(stage: Stage, ask: Ask) -> None:
    stage.put("old.py", "backoff", 0.5, until=2)
    stage.put("new.py", "backoff", 0.1, since=2)
    assert paths(ask(query="backoff")) == ["old.py"]
    stage.publish(generation=2)
    assert paths(ask(query="backoff")) == ["new.py"]


# --- parts are lost -------------------------------------------------------------------------------

LOST = "a part of the index is lost: partial"


@pytest.mark.door
@pytest.mark.fault("A part of the index is lost")
def test_a_search_tells_of_lost_parts_and_answers_from_the_others(
    stage: Stage, ask: Ask, client: Client
) -> None:
    stage.put("a.py", "backoff", 0.3, repo="whole")
    stage.put("b.py", "backoff", 0.3, repo="partial")
    lose_parts(Root.objects.get(name="partial"))
    for embedder in (None, Unavailable("no answer", code="EMBEDDER_UNAVAILABLE")):
        stage.embedder_fails = embedder
        answer = ask(query="backoff")
        assert paths(answer) == ["a.py"]
        assert answer["degraded"] == ("words only; " if embedder else "") + LOST
    stage.embedder_fails = None
    assert "degraded" not in ask(query="backoff", repository="whole")
    assert LOST in client.get("/search", {"q": "backoff"}).content.decode()
    assert LOST in client.get("/search", {"q": "x", "language": "rust"}).content.decode()


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize("embedder", [None, Unavailable("away", code="EMBEDDER_UNAVAILABLE")])
def test_without_any_part_the_search_fails(
    stage: Stage, client: Client, embedder: Unavailable | None
) -> None:
    stage.put("a.py", "backoff", 0.3)
    lose_parts(Root.objects.get())
    stage.embedder_fails = embedder
    assert error_of(client) == (502, "CHROMA_UNAVAILABLE")


@pytest.mark.door
def test_an_empty_root_is_not_degraded(stage: Stage, ask: Ask) -> None:
    stage.root()
    answer = ask(query="backoff")
    assert answer.pop("index") and answer.pop("hint")
    assert answer == {"results": [], "files": [], "modelId": MODEL}


@pytest.mark.fault("The model server fails")
def test_without_a_vector_words_are_searched_and_reported(stage: Stage, ask: Ask) -> None:
    stage.put("a.py", "def backoff():\n    return 1", 0.3)
    stage.put("b.py", "nothing of the kind", 0.1)
    stage.embedder_fails = AWAY
    answer = ask(query="backoff")
    assert answer["degraded"] == "words only"
    assert [
        (r["relPath"], r["matchedBy"], r["score"], r["chunk"], r["startLine"], r["endLine"])
        for r in answer["results"]
    ] == [("a.py", "words", None, "def backoff():\n    return 1", 1, 2)]
    assert answer["files"][0]["highestMatch"] is None


@pytest.mark.door
def test_the_page_shows_that_only_words_were_searched(stage: Stage, client: Client) -> None:
    stage.put("a.py", "backoff", 0.3)
    stage.embedder_fails = AWAY
    page = client.get("/search", {"q": "backoff"}).content.decode()
    assert "a.py" in page
    assert "only words were searched" in page
    assert "The distance is" not in page and "<b>Meaning</b>" not in page


def test_a_changed_file_is_quoted_as_it_was_ingested(stage: Stage, ask: Ask) -> None:
    stage.put("changed.py", "backoff", 0.3)
    stage.put("gone.py", "backoff twice", 0.3)
    (stage.folder / "repo/changed.py").write_text("something else")
    (stage.folder / "repo/gone.py").unlink()
    for stage.embedder_fails in (None, AWAY):
        texts = {each["relPath"]: each["chunk"] for each in ask(query="backoff")["results"]}
        assert texts == {"changed.py": "backoff", "gone.py": "backoff twice"}


def test_in_mode_vector_there_is_no_fallback_to_words(
    stage: Stage, client: Client, configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(retrieval_mode="vector")
    stage.put("a.py", "backoff", 0.3)
    stage.away = AWAY
    assert error_of(client) == (502, "CHROMA_UNAVAILABLE")


def test_a_missing_model_is_an_error_even_with_words(stage: Stage, client: Client) -> None:
    stage.put("a.py", "backoff", 0.3)
    stage.embedder_fails = Unavailable("gone", code="EMBED_MODEL_MISSING", retryable=False)
    assert error_of(client, query="backoff") == (503, "EMBED_MODEL_MISSING")


# --- several repositories -------------------------------------------------------------------------


def test_repositories_may_be_listed(stage: Stage, ask: Ask) -> None:
    for repo in ("one", "two", "three"):
        stage.put(f"{repo}.py", "backoff", 0.3, repo=repo)
    assert set(paths(ask(query="backoff", repository=["one", "three", "one"]))) == {
        "one.py", "three.py",
    }  # fmt: skip
    assert paths(ask(query="backoff", repository=["two"])) == ["two.py"]
    assert len(paths(ask(query="backoff", repository=[]))) == 3


def test_one_unknown_repository_of_several_is_an_error(stage: Stage, client: Client) -> None:
    stage.put("a.py", "backoff", 0.3)
    assert error_of(client, repository=["repo", "nope"]) == (404, "REPO_NOT_FOUND")


def test_a_repository_with_only_distant_chunks_does_not_fill_the_list(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 3)
    for i in range(5):
        stage.put(f"good{i}.py", f"alpha {i}", 0.3 + i / 100, repo="good")
        stage.put(f"weak{i}.py", f"beta {i}", 1.3 + i / 100, repo="weak")
    assert all(path.startswith("good") for path in paths(ask(query="quokka", limit=20)))


# --- filters --------------------------------------------------------------------------------------


@pytest.fixture
def tree(stage: Stage) -> Stage:
    stage.put("src/api/users.py", "backoff", 0.3)
    stage.put("src/api/users.ts", "backoff", 0.4, language="typescript")
    stage.put("src/db/users.py", "nothing", 0.2)
    stage.put("tests/users.py", "backoff", 0.1)
    return stage


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"path": "src/"}, {"src/api/users.py", "src/api/users.ts", "src/db/users.py"}),
        ({"path": "./src/api"}, {"src/api/users.py", "src/api/users.ts"}),
        ({"path": "*.ts"}, {"src/api/users.ts"}),
        ({"path": "src/*/users.py"}, {"src/api/users.py", "src/db/users.py"}),
        ({"path": "src/[!d]*/users.py"}, {"src/api/users.py"}),
        ({"path": "src/??/users.py"}, {"src/db/users.py"}),
        ({"language": "typescript"}, {"src/api/users.ts"}),
        ({"language": "TS"}, {"src/api/users.ts"}),
        ({"language": "python", "path": "src/api"}, {"src/api/users.py"}),
        ({"path": "nowhere/"}, set()),
        ({"path": None, "language": ""}, {"src/api/users.py", "src/api/users.ts",
                                          "src/db/users.py", "tests/users.py"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_only_files_that_pass_the_filters_are_returned(
    tree: Stage, ask: Ask, configure, mode: str, filters: dict, found: set[str]
) -> None:
    configure(retrieval_mode=mode)
    assert set(paths(ask(query="backoff", **filters))) == found


def test_a_filter_finds_chunks_with_a_low_rank(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "WIDTH", 2)
    for i in range(20):
        stage.put(f"src/{i}.py", "alpha", 0.1)
    stage.put("docs/a.md", "beta", 0.9, language="markdown")
    assert paths(ask(query="quokka", path="docs/")) == ["docs/a.md"]


UNKNOWN = f"language is not known: klingon (known: {', '.join(LANGUAGES)})"
EVIL_GLOBS = ["*a" * 499 + "b", "*[a-z]" * 166 + "B", "a?*" * 333 + "b", "*" * 999 + "b"]
MATCH_EACH = """
import django; django.setup()
import sys
from apps.index.models import Root
from apps.index.types import Filters
from apps.retrieval.query import fits
for glob in sys.argv[1:]:
    assert not fits(Filters(path=glob), Root(name="r"), "a" * 4_000, "")
"""


@pytest.mark.fault("Slow patterns and deep folders")
@pytest.mark.door
def test_no_glob_freezes_a_search() -> None:
    """In a process of its own, which can be killed."""
    command = [sys.executable, "-c", MATCH_EACH, *EVIL_GLOBS]
    subprocess.run(command, timeout=60, check=True)


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"path": "../other"}, "path must not hold .."),
        ({"path": "src/../../x"}, "path must not hold .."),
        ({"path": "..\\x"}, "path must not hold .."),
        ({"path": "/etc"}, "path must be relative to the repository"),
        ({"path": "C:\\src"}, "path must be relative to the repository"),
        ({"path": "src\0"}, "path must not hold a NUL"),
        ({"path": "*a" * 500 + "b"}, "path must have at most 1,000 characters"),
        ({"path": 7}, "path must be a non-empty string when provided"),
        ({"path": "  "}, "path must be a non-empty string when provided"),
        ({"path": ["src"]}, "path must be a non-empty string when provided"),
        ({"language": {"a": 1}}, "language must be a non-empty string when provided"),
        (
            {"language": "klingon"},
            UNKNOWN,
        ),
    ],
)
def test_an_invalid_filter_is_refused(
    stage: Stage, client: Client, filters: dict, problem: str
) -> None:
    response = client.post(SEARCH, {"query": "x", **filters}, content_type="application/json")
    assert (response.status_code, response.json()) == (
        400,
        {"error": "VALIDATION_FAILED", "details": [problem]},
    )


# --- the path of a search -------------------------------------------------------------------------


def test_a_search_enters_at_most_thirteen_files_of_the_room(stage: Stage) -> None:
    """Whoever follows a search has few files to read."""
    room = Path(retrieval.__file__).parent
    stage.put("near.py", "def wait(): ...", 0.3)
    entered: set[str] = set()

    def record(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if room in file.parents:
            entered.add(str(file.relative_to(room)))

    sys.setprofile(record)
    try:
        result = search(SearchQuery.parse({"query": "how to wait", "path": "*.py"}))
    finally:
        sys.setprofile(None)
    assert [match.rel_path for match in result.matches] == ["near.py"]
    assert len(entered) <= 13, sorted(entered)
