"""One root inside another: files of both are returned once, by every interface and mode."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.index.models import Clone, Root, SourceFile
from apps.retrieval import overlaps
from apps.tools.standing import standing
from apps.tools.vector_search import VECTOR_SEARCH
from tests.retrieval.conftest import Ask
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, write_files
from tests.support.parts import clear_index

__all__ = ["fill_chroma"]
pytestmark = pytest.mark.door

QUESTION = "berth_of_ship"
FILES = {
    f"quay/berth{i}.py": f"def berth_of_ship_{i}(ship):\n    return berth_of_ship({i}, ship)\n"
    for i in range(6)
}
ABOVE = {
    "top.py": "def berth_of_ship(number, ship):\n    return number, ship\n",
    "quay/notes.md": "# berth_of_ship\n\nOnly the outer one is asked to hold it.\n",
}


@pytest.fixture
def emptied() -> Iterator[None]:
    clear_index()
    yield
    clear_index()


@pytest.fixture
def nested(transactional_db: None, emptied: None, folder: Path) -> Path:
    """`port` is ingested, and so is its folder `quay`, in which it has one file more."""
    port = write_files(folder / "port", FILES)
    ingest(port / "quay")
    ingest(write_files(port, ABOVE))
    return port


def places(answer: JSON) -> list[tuple[str, str]]:
    return [(result["repo"], result["relPath"]) for result in answer["results"]]


EACH_ONCE = sorted(
    [("quay", f"berth{i}.py") for i in range(6)] + [("port", "quay/notes.md"), ("port", "top.py")]
)


def by_vectors(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(retrieval_mode="vector", retrieval_cutoff_disabled=True)


def by_both(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(retrieval_cutoff_disabled=True)


def by_words(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise Unavailable("It is away", code="EMBEDDER_UNAVAILABLE")

    monkeypatch.setattr("apps.retrieval.search.get_embedder", away)


@pytest.mark.fault("A folder inside another")
@pytest.mark.parametrize("mode", [by_vectors, by_both, by_words])
def test_a_repeated_passage_is_returned_once_everywhere(
    nested: Path,
    ask: Ask,
    client: Client,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    fill_chroma: Callable[[], None],
    mode: Callable[..., None],
) -> None:
    fill_chroma()
    mode(configure, monkeypatch)
    answer = ask(query=QUESTION, limit=20)
    assert sorted(places(answer)) == EACH_ONCE
    assert len(answer["files"]) == len(EACH_ONCE)
    assert standing(VECTOR_SEARCH).run({"query": QUESTION, "limit": 20}) == answer
    arguments = {"query": QUESTION, "limit": 20, "format": "full"}
    call = {"name": "VectorSearch", "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {"accept": "application/json, text/event-stream"}
    reply = client.post("/mcp", request, content_type="application/json", headers=accepts).json()
    answer.pop("index")
    assert reply["result"]["structuredContent"] == answer
    page = client.get("/search", {"q": QUESTION, "limit": 20}).content.decode()
    assert "8 matches in 8 files" in page
    # The limit is filled by others, not by holes.
    assert len(places(ask(query=QUESTION, limit=7))) == 7


def test_a_search_in_one_of_two_nested_roots_returns_all_its_files(nested: Path, ask: Ask) -> None:
    found = ask(query=QUESTION, limit=20, repository="port")
    assert sorted(places(found)) == sorted(("port", path) for path in {**FILES, **ABOVE})
    assert len(places(ask(query=QUESTION, limit=20, repository="quay"))) == 6


def test_without_room_for_what_is_common_answers_are_the_same(
    nested: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlaps, "MAX_CACHED", 0)
    for _ in range(2):
        assert sorted(places(ask(query=QUESTION, limit=20))) == EACH_ONCE


@pytest.mark.fault("A folder inside another")
def test_of_two_versions_of_a_file_the_last_ingested_is_returned(nested: Path, ask: Ask) -> None:
    write_files(nested, {"quay/berth0.py": "def berth_of_ship_0():\n    return 'later'\n"})
    ingest(nested)
    found = [(p, r["chunk"]) for p, r in zip_places(ask(query=QUESTION, limit=20)) if "0" in p[1]]
    assert [place for place, _ in found] == [("port", "quay/berth0.py")]
    assert "later" in found[0][1]
    ingest(nested / "quay")
    assert set(places(ask(query=QUESTION, limit=20))) >= {("quay", "berth0.py"), ("port", "top.py")}
    assert ("port", "quay/berth0.py") not in places(ask(query=QUESTION, limit=20))


def zip_places(answer: JSON) -> list[tuple[tuple[str, str], JSON]]:
    return list(zip(places(answer), answer["results"], strict=True))


@pytest.mark.fault("A folder inside another")
def test_a_damaged_root_answers_only_for_files_that_no_other_has(nested: Path, ask: Ask) -> None:
    Root.objects.filter(name="quay").update(damage="vectors are lost")
    found = ask(query=QUESTION, limit=20)
    assert {repo for repo, _ in places(found)} == {"port"}
    assert len(places(found)) == len(EACH_ONCE)


@pytest.mark.fault("A folder inside another")
@pytest.mark.door
def test_a_repeated_definition_is_returned_once(nested: Path, client: Client) -> None:
    def post(tool: str) -> list[tuple[str, str]]:
        body = {"name": "berth_of_ship_1" if tool == "definitions" else QUESTION, "limit": 100}
        address = f"/tools/symbol-{tool}"
        return places(client.post(address, body, content_type="application/json").json())

    assert post("definitions") == [("quay", "berth1.py")]
    used = post("references")
    assert sorted(used) == [
        ("port", "top.py"),
        *[("quay", f"berth{i}.py") for i in range(6)],
    ]


def test_the_page_counts_repeated_files_once(nested: Path, client: Client) -> None:
    page = client.get("/search").content.decode()
    assert re.search(r"python\s*\(7\)", page), re.findall(r"<option[^>]*>[^<]*", page)


def test_sibling_folders_with_a_common_prefix_do_not_overlap(nested: Path, ask: Ask) -> None:
    write_files(nested.parent / "port-side", {"quay/berth0.py": FILES["quay/berth0.py"]})
    ingest(nested.parent / "port-side")
    found = places(ask(query=QUESTION, limit=20))
    assert ("port-side", "quay/berth0.py") in found
    assert ("quay", "berth0.py") in found
    (part,) = Root.objects.get(name="port-side").parts
    assert part["rows"] == 1


def test_the_palette_finds_files_of_the_inner_root_after_many_repeated_ones(
    nested: Path, client: Client
) -> None:
    files = {f"a/mast{i}.py": f"mast_{i} = {i}\n" for i in range(40)}
    ingest(write_files(nested.parent / "yard", files))
    ingest(nested.parent / "yard" / "a")
    html = client.get("/ui/palette", {"q": "mast"}).content.decode()
    assert re.findall(r'href="/code/(\w+)/(mast\d+)\.py"', html) == [
        ("a", f"mast{i}") for i in (0, 1, 10, 11, 12)
    ]


def test_common_files_of_many_repositories_are_read_once(transactional_db: None) -> None:
    """Not again by the next question, however many repositories have refs."""
    roots = []
    for number in range(20):
        url = f"https://example.org/{number}"
        for path, ref in ((f"/clones/{number}", ""), (f"/clones/{number}-v1", "@v1")):
            Clone.objects.create(id=uuid4(), path=path, url=url + ref)
            roots.append(Root.objects.create(path=path, name=path, generation=1))
    for is_first in (True, False):
        with CaptureQueriesContext(connection) as queries:
            overlaps.repeated_files(roots)
        reads = [query for query in queries if SourceFile._meta.db_table in query["sql"]]
        assert bool(reads) is is_first
