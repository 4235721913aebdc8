"""The folder that a client works in: its repository is meant where a call names none."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.mcp import scoping
from tests.mcp.doors.workspace import DOCK, found, refused, repos
from tests.mcp.speech import EVERY
from tests.support.ingested import SAMPLE, ingest, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

QUESTION = {"query": "how long a retry waits"}
MOOR = {"query": "tie a ship to the dock"}


@pytest.fixture
def repositories(folder: Path, transactional_db: None) -> Path:
    """`lighthouse` and `harbour`, ingested below the folder that is returned."""
    ingest(write_files(folder / "lighthouse", SAMPLE), "lighthouse")
    ingest(write_files(folder / "harbour", DOCK), "harbour")
    return folder


class TestTheFolderOfACall:
    @pytest.mark.parametrize("version", EVERY)
    async def test_a_search_looks_into_its_repository_only(
        self, version: str, repositories: Path
    ) -> None:
        for where in ("lighthouse", "lighthouse/src", "lighthouse/new/folder"):
            output = await found("VectorSearch", repositories / where, version=version, **QUESTION)
            assert repos(output) == {"lighthouse"}
            assert "workspace" not in output

    async def test_every_tool_with_a_repository_uses_it(self, repositories: Path) -> None:
        home = repositories / "lighthouse"
        assert repos(await found("Grep", home, pattern="ship")) == {"lighthouse"}
        assert repos(await found("ListFiles", home)) == {"lighthouse"}
        assert repos(await found("Context", home, question="Where is a ship saved?")) == {
            "lighthouse"
        }
        assert (await found("ReadFile", home, path="src/retry.py"))["repo"] == "lighthouse"
        assert (await found("FileOutline", home, path="src/retry.py"))["repo"] == "lighthouse"

    async def test_a_named_repository_comes_first(self, repositories: Path) -> None:
        home = repositories / "lighthouse"
        assert repos(await found("Grep", home, pattern="ship", repository="harbour")) == {"harbour"}
        absolute = str(repositories / "harbour" / "src")
        assert repos(await found("Grep", home, pattern="ship", path=absolute)) == {"harbour"}

    @pytest.mark.parametrize("every", ["*", ["*"], '["*"]'])
    async def test_an_asterisk_is_all_repositories(self, every: Any, repositories: Path) -> None:
        for home in (repositories / "lighthouse", ""):
            output = await found("Grep", home, pattern="ship", repository=every)
            assert repos(output) == {"lighthouse", "harbour"}

    async def test_the_innermost_repository_counts(self, repositories: Path) -> None:
        await asyncio.to_thread(ingest, repositories / "lighthouse" / "src", "inner")
        inner = await found("Grep", repositories / "lighthouse" / "src", pattern="ship")
        assert repos(inner) == {"inner"}

    async def test_several_folders_are_several_repositories(self, repositories: Path) -> None:
        both = [repositories / "lighthouse", repositories / "harbour"]
        await asyncio.to_thread(ingest, write_files(repositories / "third", DOCK), "third")
        assert repos(await found("Grep", both, pattern="ship")) == {"lighthouse", "harbour"}
        assert "repository is required" in await refused("ReadFile", both, path="src/retry.py")

    async def test_a_folder_is_written_as_a_path_a_uri_or_an_id(self, repositories: Path) -> None:
        odd = write_files(repositories / "mäßig, ü", {"a.py": "ship = 1\n"})
        await asyncio.to_thread(ingest, odd, "odd")
        for where in (odd, odd.as_uri(), f"{odd}/", "odd"):
            assert repos(await found("Grep", where, pattern="ship")) == {"odd"}
        (repositories / "link").symlink_to(odd)
        assert repos(await found("Grep", repositories / "link", pattern="ship")) == {"odd"}

    async def test_a_hint_names_others_that_answer_nearer(self, repositories: Path) -> None:
        home = repositories / "lighthouse"
        assert "harbour" in (await found("VectorSearch", home, **MOOR))["hint"]
        assert "harbour" in (await found("Context", home, question=MOOR["query"]))["hint"]
        assert "harbour" in (await found("Grep", home, pattern="def moor"))["hint"]
        assert "harbour" in (await found("FindDefinitions", home, name="moor"))["hint"]
        assert "hint" not in await found("VectorSearch", home, **QUESTION)
        assert "hint" not in await found("Context", home, question=QUESTION["query"])
        for number in range(4):
            files = {f"{number}.py": DOCK["src/dock.py"]}
            await asyncio.to_thread(ingest, write_files(repositories / f"dock{number}", files))
        hint = (await found("Grep", home, pattern="def moor"))["hint"]
        assert sum(hint.count(name) for name in ("harbour", "dock")) == 3

    @pytest.mark.parametrize("format", ["compact", "full"])
    async def test_a_good_answer_costs_no_second_search(
        self, format: str, repositories: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        searches: list[object] = []
        monkeypatch.setattr(scoping, "search", searches.append)
        home = repositories / "lighthouse"
        for query in (QUESTION["query"], "What calls RetryPolicy?"):
            await found("VectorSearch", home, query=query, format=format)
            await found("Context", home, question=query, format=format)
        assert not searches

    async def test_no_other_is_named_where_all_are_weak(self, repositories: Path) -> None:
        nonsense = "qxv zzkw wobbulator flimsance"
        for tool, name in (("VectorSearch", "query"), ("Context", "question")):
            output = await found(tool, repositories / "lighthouse", **{name: nonsense})
            assert all(row["weak"] for row in output["results"])
            assert "harbour" not in str(output)

    async def test_an_overview_needs_no_repository(self, repositories: Path) -> None:
        for version in EVERY:
            output = await found("Overview", repositories / "lighthouse/src", version=version)
            assert output["repo"] == "lighthouse"
        both = [repositories / "lighthouse", repositories / "harbour"]
        for where in (both, ""):
            assert "repository is required" in await refused("Overview", where)

    async def test_off_leaves_the_folder_out(
        self, repositories: Path, configure: Callable[..., None]
    ) -> None:
        configure(mcp_workspace="off")
        output = await found("Grep", repositories / "lighthouse", pattern="ship")
        assert repos(output) == {"lighthouse", "harbour"}

    @pytest.mark.parametrize("where", ["", ",,", "%00", "/" + "x" * 5_000])
    async def test_what_is_no_folder_is_none(self, where: str, repositories: Path) -> None:
        headers = {"Codeinfo-Workspace": where}
        output = await found("Grep", headers=headers, pattern="ship")
        assert "workspace" not in output


class TestRestricted:
    async def test_a_folder_outside_the_list_is_refused(self, repositories: Path) -> None:
        await asyncio.to_thread(ingest, write_files(repositories / "third", DOCK), "secret")
        address = "/mcp?repository=lighthouse&repository=harbour"
        inside = await found("Grep", repositories / "harbour", address=address, pattern="ship")
        assert repos(inside) == {"harbour"}
        for where in ("third", "nowhere"):
            text = await refused("Grep", repositories / where, address=address, pattern="ship")
            assert text.startswith("FORBIDDEN_REPOSITORY") and "secret" not in text

    async def test_a_single_repository_needs_no_folder(self, repositories: Path) -> None:
        output = await found(
            "Grep", repositories / "harbour", address="/mcp?repository=lighthouse", pattern="ship"
        )
        assert repos(output) == {"lighthouse"}
        assert "hint" not in output

    async def test_a_hint_names_no_repository_outside(self, repositories: Path) -> None:
        await asyncio.to_thread(ingest, write_files(repositories / "third", SAMPLE), "third")
        home = repositories / "lighthouse"
        for query in (
            "repository=lighthouse&repository=third",
            "area=%09*.md",
            "tool=VectorSearch",
        ):
            output = await found("VectorSearch", home, address=f"/mcp?{query}", **MOOR)
            assert "harbour" not in str(output), query
