"""The resources of /mcp: repositories, folders and files, by the rules of the source viewer."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.core.types import JSON
from apps.mcp import resources
from apps.mcp.calls import LINKS_META_KEY
from tests.mcp.speech import EVERY, HANDSHAKE, STATELESS, Answer, ask, call
from tests.support.calls import CALLS
from tests.support.ingested import CALLER, SAMPLE, ingest, ingest_sample, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

ODD = {"a b/100%/C#.md": "# odd\n", "a b/é?.py": "x = 1\n", "a b/#L1.py": "hash = 1\n"}
FILE = "codeinfo://lighthouse/src/retry.py"


@pytest.fixture
def lighthouse(folder: Path, transactional_db: None) -> Path:
    ingest_sample(folder)
    return folder


@pytest.fixture
def with_caller(folder: Path, transactional_db: None) -> None:
    ingest_sample(write_files(folder, CALLER))


async def read(uri: str, version: str = STATELESS) -> list[JSON]:
    contents: list[JSON] = (await ask("resources/read", {"uri": uri}, version)).result["contents"]
    return contents


async def refused(uri: str, version: str = STATELESS) -> Answer:
    return await ask("resources/read", {"uri": uri}, version)


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.usefixtures("lighthouse")
async def test_the_list_leads_to_every_file(version: str) -> None:
    result = (await ask("resources/list", {}, version)).result
    (repository,) = result["resources"]
    assert (repository["uri"], repository["name"]) == ("codeinfo://lighthouse/", "lighthouse")
    assert "nextCursor" not in result
    found, to_read = {}, [repository["uri"]]
    while to_read:
        uri = to_read.pop()
        (content,) = await read(uri, version)
        assert content["uri"] == uri
        if content["mimeType"] == "text/uri-list":
            to_read += content["text"].split()
        else:
            found[uri.removeprefix("codeinfo://lighthouse/")] = content["text"] + "\n"
    assert found == {name: SAMPLE[name] for name in SAMPLE if name != "package-lock.json"}


@pytest.mark.parametrize("version", EVERY)
async def test_the_templates_are_listed(version: str) -> None:
    templates = (await ask("resources/templates/list", {}, version)).result["resourceTemplates"]
    assert templates[0]["uriTemplate"] == "codeinfo://{repository}/{+path}"
    assert templates[1]["uriTemplate"] == "codeinfo://{repository}/{+path}#L{start}-L{end}"
    if version < "2025-11-25":
        both = (await ask("resources/listTemplates", {}, version)).result
        assert both["resource_templates"] == both["resourceTemplates"] == templates


async def test_the_list_has_pages_in_a_fixed_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PAGE_SIZE", 2)
    for name in ("c", "e", "a", "d", "b"):
        await sync_to_async(ingest)(write_files(tmp_path / name, {"x.txt": f"{name}\n"}))
    names: list[str] = []
    sizes: list[int] = []
    params: dict[str, Any] = {}
    while True:
        result = (await ask("resources/list", params)).result
        names += [resource["name"] for resource in result["resources"]]
        sizes.append(len(result["resources"]))
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    assert (names, sizes) == (["a", "b", "c", "d", "e"], [2, 2, 1])
    # A repository that is ingested between two pages does not shift the next one.
    second = (await ask("resources/list", {})).result["nextCursor"]
    await sync_to_async(ingest)(write_files(tmp_path / "aa", {"x.txt": "aa\n"}))
    page = (await ask("resources/list", {"cursor": second})).result["resources"]
    assert [resource["name"] for resource in page] == ["c", "d"]


@pytest.mark.parametrize("cursor", ["", "2", "x:y", "IjIi:forged"])
async def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        assert (await ask(method, {"cursor": cursor})).error["code"] == -32602


@pytest.mark.parametrize(
    ("lines", "first", "last", "canonical"),
    [
        ("#L6-L8", 6, 8, "#L6-L8"),
        ("#L6-8", 6, 8, "#L6-L8"),
        ("#L6", 6, 6, "#L6"),
        ("#L17-L999999", 17, 18, "#L17-L18"),
        ("", 1, 18, ""),
        ("#", 1, 18, ""),
    ],
)
@pytest.mark.usefixtures("lighthouse")
async def test_lines_of_a_file(lines: str, first: int, last: int, canonical: str) -> None:
    (content,) = await read(FILE + lines)
    source = SAMPLE["src/retry.py"].split("\n")
    assert content["text"].split("\n") == source[first - 1 : last]
    assert (content["uri"], content["mimeType"]) == (FILE + canonical, "text/x-python")


@pytest.mark.usefixtures("lighthouse")
@pytest.mark.parametrize(
    "uri",
    [
        "codeinfo://LIGHTHOUSE/src/retry.py",
        "CodeInfo://lighthouse/src/retry.py",
        "codeinfo://lighthouse/lighthouse/src/retry.py",
        "codeinfo://light%68ouse/src%2Fretry.py",
    ],
)
async def test_a_uri_is_read_as_clients_write_it(uri: str) -> None:
    assert (await read(uri))[0]["uri"] == FILE


async def test_names_may_have_any_character(tmp_path: Path) -> None:
    await sync_to_async(ingest)(write_files(tmp_path / "odd", ODD), "my repo/ü#1")
    root = "codeinfo://my%20repo%2F%C3%BC%231/"
    (listed,) = (await ask("resources/list")).result["resources"]
    assert listed["uri"] == root
    to_read, found = [root], {}
    while to_read:
        (content,) = await read(to_read.pop())
        if content["mimeType"] == "text/uri-list":
            to_read += content["text"].split()
        else:
            found[content["uri"]] = content["text"]
    assert found == {
        f"{root}a%20b/100%25/C%23.md": "# odd",
        f"{root}a%20b/%C3%A9%3F.py": "x = 1",
        f"{root}a%20b/%23L1.py": "hash = 1",
    }
    # As a simple client fills the template in.
    version = HANDSHAKE[-1]
    assert (await read("codeinfo://my repo%2Fü#1/a b/é?.py", version))[0]["text"] == "x = 1"
    assert (await read(f"{root}a b/100%/C#.md", version))[0]["text"] == "# odd"


NOT_THERE = (
    "codeinfo://lighthouse/none.py",
    "codeinfo://lighthouse/src/none/",
    "codeinfo://lighthouse/package-lock.json",
    "codeinfo://lighthouse/../../etc/passwd",
    "codeinfo://lighthouse//etc/passwd",
    "codeinfo://lighthouse/%00",
    "codeinfo://lighthouse/%ff%fe",
    "codeinfo://other/src/retry.py",
    "codeinfo://",
    "file:///etc/passwd",
    "x",
    "codeinfo://lighthouse/" + "x" * 20_000,
)


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.usefixtures("lighthouse")
async def test_what_is_not_ingested_is_not_found(version: str) -> None:
    for uri in NOT_THERE:
        answer = await refused(uri, version)
        assert answer.error["data"]["uri"] == uri
        assert answer.error["code"] == (-32602 if version == STATELESS else -32002)
        assert answer.error["message"].startswith("Resource not found")
        assert answer.status == (400 if version == STATELESS else 200)


@pytest.mark.parametrize("version", [HANDSHAKE[-1], STATELESS])
@pytest.mark.parametrize("lines", ["#L19", "#L0", "#L8-L6"])
@pytest.mark.usefixtures("lighthouse")
async def test_lines_that_a_file_does_not_have_are_refused(lines: str, version: str) -> None:
    error = (await refused(FILE + lines, version)).error
    assert (error["code"], error["data"]["code"]) == (-32602, "VALIDATION_FAILED")


async def test_a_long_file_is_read_in_parts(
    lighthouse: Path, configure: Callable[..., None]
) -> None:
    configure(tool_max_chars=200)
    source = SAMPLE["src/retry.py"].removesuffix("\n").split("\n")
    uri, lines, parts = FILE, [], 0
    while uri:
        content, *notes = await read(uri)
        assert len(content["text"]) <= 200
        lines += content["text"].split("\n")
        parts += 1
        uri = notes[0]["text"].rpartition(" ")[2] if notes else ""
        assert not notes or f"of {len(source)}" in notes[0]["text"]
    assert lines == source
    assert parts > 2
    configure(tool_max_chars=10)
    content, note = await read(FILE)
    assert content["text"] == source[0][:10]
    assert "cut" in note["text"]


async def test_a_changed_file_is_read_where_its_lines_are_now(lighthouse: Path) -> None:
    file = lighthouse / "src/retry.py"
    file.write_text("# new\n# lines\n" + file.read_text())
    content, note = await read(f"{FILE}#L6-L8")
    assert content["text"].startswith("def backoff_delay")
    assert (content["uri"], "down by 2" in note["text"]) == (f"{FILE}#L8-L10", True)
    file.write_text("nothing is left\n")
    content, note = await read(f"{FILE}#L6-L8")
    assert content["text"].startswith("def backoff_delay")
    assert "As ingested" in note["text"]
    assert (await read(FILE))[0]["text"] == "nothing is left"
    file.unlink()
    content, note = await read(FILE)
    assert content["text"].rstrip() == SAMPLE["src/retry.py"].rstrip()
    assert "As ingested" in note["text"]


async def test_a_large_folder_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_ENTRIES", 2)
    files = {f"{name}.txt": "x\n" for name in "abcde"}
    await sync_to_async(ingest)(write_files(tmp_path / "wide", files))
    (content,) = await read("codeinfo://wide/")
    *entries, note = content["text"].splitlines()
    assert entries == ["codeinfo://wide/a.txt", "codeinfo://wide/b.txt"]
    assert note.startswith("# 3 more")


# Tools with a row for each file or passage.
ROWS = (
    *("VectorSearch", "RelatedCode", "FindDefinitions", "FindReferences", "FindCallers"),
    *("FindImports", "FileOutline", "ListIngestedRepositories"),
)


@pytest.mark.parametrize("tool", ROWS)
@pytest.mark.usefixtures("with_caller")
async def test_every_row_of_a_result_links_to_its_lines(tool: str) -> None:
    for version, form in product(EVERY, ("compact", "full")):
        params = {"name": tool, "arguments": {**CALLS[tool], "format": form}}
        result = (await ask("tools/call", params, version)).result
        output, links = result["structuredContent"], result["_meta"][LINKS_META_KEY]
        rows = output.get("results") or output.get("repos") or [output]
        assert len(links) == len(rows), (version, form)
        for row, uri in zip(rows, links, strict=True):
            content = (await read(uri, version))[0]
            chunk = row.get("chunk")
            if chunk is not None:
                text = chunk if isinstance(chunk, str) else "\n".join(chunk)
                assert content["text"].strip() == text.strip(), (version, form)
            assert content["uri"] == uri, (version, form)
        # The model does not pay for them.
        assert "codeinfo://" not in result["content"][0]["text"], (version, form)


@pytest.mark.usefixtures("lighthouse")
async def test_a_narrowed_endpoint_has_only_tools() -> None:
    address = "/mcp?repository=lighthouse"
    for method, params in (("resources/read", {"uri": FILE}), ("prompts/list", {})):
        assert (await ask(method, params, STATELESS, address)).error["code"] == -32601
    result = (await call("VectorSearch", STATELESS, address, query="retry")).result
    assert LINKS_META_KEY not in result["_meta"]
