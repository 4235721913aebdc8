"""A question that is limited to one of two nested repositories, to both, or to paths of them: each
file is found once, and none outside."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.agents.tools import toolset
from apps.core.errors import CodeinfoError
from apps.index.types import Area
from apps.lookup.symbols import callers, imports
from apps.retrieval.query import write_area
from apps.tools.tool import Tool
from tests.support.following import chroma_filled
from tests.support.ingested import ingest, ingested_once, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

QUESTION = "How is a ship moored at the berth?"


def module(name: str, other: str) -> str:
    return (
        f"from {other} import moor as moor_there\n\n\n"
        f'def moor(ship):\n    """Moor a ship at the berth of {name}."""\n'
        "    return moor_there(ship)\n\n\n"
        f"def only_{name}(ship):\n    return moor(ship)\n"
    )


# `port` is ingested, and so is its folder `quay`.
PORT = {
    "top.py": (
        '"""Moor."""\n\n\ndef moor(ship):\n    """Moor a ship at a berth."""\n    return ship\n\n\n'
        "def lash(ship):\n    return moor(ship)\n"
    ),
    "shed/store.py": module("store", "top"),
    "quay/berth.py": module("berth", "top"),
    "quay/crane.py": module("crane", "berth"),
    "quay/notes.md": "# Mooring\n\nA ship is moored at the berth: call `moor`.\n",
    "quay/lashing.py": "from top import lash\n\n\ndef tie(ship):\n    return lash(ship)\n",
    "quay/blob.py": b"\0\1\2" * 100,
}
QUAY = {path.removeprefix("quay/") for path in PORT if path.startswith("quay/")}
OUTER = {("port", path) for path in PORT if not path.startswith("quay/")}
INNER = {("quay", path) for path in QUAY}
AS_OUTER = {("port", f"quay/{path}") for path in QUAY}
BLOBS = {("quay", "blob.py"), ("port", "quay/blob.py")}

# What a question is limited to, and the files that it finds: repository and path.
SCOPES: dict[str, tuple[tuple[Area, ...], set[tuple[str, str]]]] = {
    "nothing": ((), OUTER | INNER),
    "the outer one": ((Area("port"),), OUTER | AS_OUTER),
    "the inner one": ((Area("quay"),), INNER),
    "both": ((Area("port"), Area("quay")), OUTER | INNER),
    "the folder in the outer one": ((Area("port", "quay/"),), AS_OUTER),
    "the folder of any": ((Area("", "quay/"),), AS_OUTER),
    "the folder and the inner one": ((Area("port", "quay/"), Area("quay")), INNER),
    "another folder and the inner one": (
        (Area("port", "shed/"), Area("quay")),
        {("port", "shed/store.py")} | INNER,
    ),
    "a file of each": (
        (Area("port", "quay/berth.py"), Area("quay", "crane.py")),
        {("port", "quay/berth.py"), ("quay", "crane.py")},
    ),
    "the same file of each": (
        (Area("port", "quay/berth.py"), Area("quay", "berth.py")),
        {("quay", "berth.py")},
    ),
    "names of any": ((Area("", "**/berth.py"),), {("quay", "berth.py")}),
}


@pytest.fixture(scope="module")
def base(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("nested")))
    with ingested_once(django_db_blocker, base, {"port": PORT}):
        with django_db_blocker.unblock():
            ingest(base / "port" / "quay")
        with chroma_filled(django_db_blocker):
            yield base


@pytest.fixture(autouse=True)
def patient(base: Path, configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(ingest_base=(base,), tool_max_chars=1_000_000, retrieval_cutoff_disabled=True)
    for each in (callers, imports):  # another process may keep the machine busy
        monkeypatch.setattr(each, "PARSE_SECONDS", 60.0)


class Limited:
    """The tools of a question, and the files that it may find."""

    def __init__(self, areas: tuple[Area, ...], found: set[tuple[str, str]]) -> None:
        self.tools: dict[str, Tool] = {tool.name: tool for tool in toolset(areas=areas)}
        self.areas, self.found = areas, found - BLOBS
        self.skipped = found & BLOBS
        self.repositories = {repo for repo, _ in found}

    def rows(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """The results, in which no line of a file is told twice, under whatever name."""
        rows: list[dict[str, Any]] = self.tools[tool].run(arguments)["results"]
        places = Counter(
            (absolute(row["repo"], row["relPath"]), row.get("startLine"), row.get("column"))
            for row in rows
        )
        assert [place for place, count in places.items() if count > 1] == []
        return rows

    def files(self, tool: str, **arguments: Any) -> set[tuple[str, str]]:
        return {(row["repo"], row["relPath"]) for row in self.rows(tool, **arguments)}

    def absolute(self, tool: str, **arguments: Any) -> set[str]:
        """Of what only an outer repository can tell, it may tell in its own words."""
        return paths(self.files(tool, **arguments))

    def ending(self, *endings: str) -> set[tuple[str, str]]:
        return {place for place in self.found if place[1].endswith(endings)}


def absolute(repo: str, path: str) -> str:
    return f"port/quay/{path}" if repo == "quay" else f"port/{path}"


def paths(places: Iterable[tuple[str, str]]) -> set[str]:
    return {absolute(*place) for place in places}


@pytest.fixture(params=SCOPES)
def limited(request: pytest.FixtureRequest) -> Limited:
    return Limited(*SCOPES[request.param])


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_vector_search(limited: Limited, mode: str, configure: Any) -> None:
    configure(retrieval_mode=mode, chroma="follow")
    assert limited.files("VectorSearch", query=QUESTION, limit=20) == limited.found


def test_names(limited: Limited) -> None:
    modules = limited.ending("berth.py", "crane.py", "store.py", "top.py")
    assert limited.files("FindDefinitions", name="moor", limit=50) == modules
    assert limited.files("FindReferences", name="moor", limit=50) == modules
    assert limited.files("FindDefinitions", name="only_berth") == limited.ending("berth.py")


def test_grep_and_the_lists(limited: Limited) -> None:
    for mode in ("content", "files", "count"):
        assert limited.files("Grep", pattern="moor|lash", mode=mode, limit=500) == limited.found
    assert limited.files("ListFiles", path="*", limit=500) == limited.found
    assert limited.files("ListFiles", depth=20, limit=500) == limited.found
    assert limited.files("ListFiles", skipped=True) == limited.skipped
    top = limited.tools["ListFiles"].run({"depth": 1})["results"]
    assert sum(row.get("files", 1) for row in top) == len(limited.found)


def test_callers(limited: Limited) -> None:
    found = limited.absolute("FindCallers", name="moor", depth=3, limit=50)
    assert found <= paths(limited.found)
    # Each module calls what it defines, which can be told in each repository alone.
    assert found >= paths(limited.ending("berth.py", "crane.py", "store.py"))
    definitions = limited.tools["FindCallers"].run({"name": "moor"})["definitions"]
    places = sorted((each["repo"], each["relPath"]) for each in definitions)
    assert places == sorted(limited.ending("berth.py", "crane.py", "store.py", "top.py"))


def test_a_call_out_of_the_inner_repository_is_found_in_the_outer_one(limited: Limited) -> None:
    found = limited.absolute("FindCallers", name="lash")
    of_outer = [area for area in limited.areas or [Area("")] if area.repository in ("", "port")]
    is_searched = any(area.path in ("", "quay/") for area in of_outer)
    # Only the outer one knows what the import means.
    expected = {"port/quay/lashing.py"} if is_searched else set()
    assert found == expected & paths(limited.found)
    assert limited.absolute("FindCallers", name="top.py:9") == found


def test_imports(limited: Limited) -> None:
    inside = paths(limited.found)
    if {"port/quay/berth.py", "port/quay/crane.py"} <= inside:
        found = limited.absolute("FindImports", name="berth.py")
        # What it imports itself is a row where no inner repository names it as a library.
        assert found - {"port/quay/berth.py"} == {"port/quay/crane.py"}
    for name in ("quay/berth.py", "berth.py", "quay/lashing.py", "top.py", "lashing"):
        assert limited.absolute("FindImports", name=name) <= inside
    if ("port", "top.py") in limited.found:
        importing = {"port/quay/berth.py", "port/quay/lashing.py", "port/shed/store.py"}
        assert limited.absolute("FindImports", name="top.py") == importing


def test_context_and_related_code(limited: Limited) -> None:
    pieces = limited.tools["Context"].run({"question": QUESTION, "max_tokens": 8_000})["results"]
    found = {(each["repo"], each["relPath"]) for each in pieces}
    assert found and found <= limited.found
    for repo, path in limited.found:
        lines = {"path": path, "repository": repo, "start_line": 1, "end_line": 9, "limit": 20}
        related = limited.files("RelatedCode", **lines)
        assert related == limited.found - {(repo, path)}


def test_one_file(limited: Limited) -> None:
    for repo, path in sorted((OUTER | INNER | AS_OUTER) - BLOBS):
        is_chosen = not limited.areas or any(
            area.repository in ("", repo) and (area.path == "" or path.startswith(area.path))
            for area in limited.areas
        )
        is_chosen |= ("", "**/berth.py") in limited.areas and path.endswith("berth.py")
        for tool in ("ReadFile", "FileOutline"):
            is_named = not limited.areas or limited.areas[0].repository == ""
            if not is_named and {repo} != limited.repositories != {"port", "quay"}:
                continue  # with one repository the tools have no parameter for another one
            try:
                limited.tools[tool].run({"repository": repo, "path": path})
                is_told = True
            except CodeinfoError as error:
                is_told = False
                assert error.code.startswith("FORBIDDEN"), error
            assert is_told == is_chosen, (tool, repo, path)


def test_the_list_of_repositories(limited: Limited) -> None:
    rows = limited.tools["ListIngestedRepositories"].run({})["repos"]
    named = {area.repository for area in limited.areas}
    assert {row["id"] for row in rows} == (named - {""} or {"port", "quay"})


# --- of several versions, and in the composer -----------------------------------------------------


def test_a_line_that_the_inner_repository_has_no_more_is_not_told(base: Path) -> None:
    everything = Limited(*SCOPES["both"])
    assert ("quay", "crane.py") in everything.files("FindCallers", name="moor")
    write_files(base / "port" / "quay", {"crane.py": "def moor(ship):\n    return ship\n"})
    try:
        ingest(base / "port" / "quay")
        for tool, name in (("FindCallers", "moor"), ("FindImports", "berth.py")):
            assert not {
                place for place in everything.files(tool, name=name) if "crane" in place[1]
            } - {("quay", "crane.py")}
        outer = Limited(*SCOPES["the outer one"])
        assert ("port", "quay/crane.py") in outer.files("FindCallers", name="moor")
    finally:
        write_files(base / "port" / "quay", {"crane.py": str(PORT["quay/crane.py"])})
        ingest(base / "port" / "quay")


@pytest.mark.parametrize(
    ("chosen", "typed", "offered"),
    [
        ((), "berth", [("quay", "berth.py")]),
        ((Area("quay"),), "berth", [("quay", "berth.py")]),
        ((Area("port"),), "berth", [("port", "quay/berth.py")]),
        ((Area("port"), Area("quay")), "berth", [("quay", "berth.py")]),
        ((), "port/quay/be", [("port", "quay/berth.py")]),
        ((), "quay/be", [("quay", "berth.py")]),
        ((), "store", [("port", "shed/store.py")]),
    ],
)
def test_the_composer_offers_each_file_once(
    client: Client, chosen: tuple[Area, ...], typed: str, offered: list[tuple[str, str]]
) -> None:
    query = {"at": typed, "scope": list(map(write_area, chosen))}
    html = client.get("/ui/chat/scope", query).content.decode()
    found = [part.partition('"')[0] for part in html.split('data-area="')[1:]]
    assert [each for each in found if "." in each] == ["\t".join(place) for place in offered]
