"""Arguments as clients and models write them, on real repositories."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from django.test import Client

from apps.core.types import JSON
from apps.index import paths
from tests.mcp.doors.clients import MODES, in_this_process
from tests.mcp.speech import EVERY, STATELESS, ask
from tests.support.ingested import SAMPLE, ingest, ingested_once, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

RETRY = "src/retry.py"
ODD = {"v:12/a.py": "x = 1\n", "back\\slash.txt": "a name with a backslash\n"}


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """`lighthouse` in `light house`, and `harbour`, below the folder that is returned."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("written")))
    dock = {"src/dock.py": "def moor(ship):\n    pass\n"}
    with ingested_once(django_db_blocker, base, {"harbour": dock}):
        with django_db_blocker.unblock():
            ingest(write_files(base / "light house", SAMPLE | ODD), "lighthouse")
        yield base


async def answer(tool: str, address: str = "/mcp", **arguments: Any) -> JSON:
    params = {"name": tool, "arguments": arguments}
    result = (await ask("tools/call", params, path=address)).result
    assert not result.get("isError"), result["content"][0]["text"]
    structured: JSON = result["structuredContent"]
    return structured


async def refusal(tool: str, address: str = "/mcp", **arguments: Any) -> str:
    params = {"name": tool, "arguments": arguments}
    result = (await ask("tools/call", params, path=address)).result
    assert result["isError"]
    return str(result["content"][0]["text"])


async def read(path: str, address: str = "/mcp", **arguments: Any) -> str:
    """The file and the numbers of the lines that ReadFile returns."""
    found = await answer("ReadFile", address, path=path, **arguments)
    numbers = [line.partition(":")[0] for line in found["text"]]
    return f"{found['repo']}/{found['relPath']} {numbers[0]}-{numbers[-1]}"


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("HOME/src/retry.py", "1-18"),
        ("HOME//src/./retry.py", "1-18"),
        ("HOME/src/../src/retry.py:12", "12-12"),
        ("URI/src/retry.py", "1-18"),
        ("URI/src/re%74ry.py#L2-L4", "2-4"),
        ("file:HOME/src/retry.py", "1-18"),
        ("src/retry.py:12-14", "12-14"),
        ("src/retry.py:12:5", "12-12"),
        ("src/retry.py:12-", "12-18"),
        ("src/retry.py#L12", "12-12"),
        ("src/retry.py#L12-14", "12-14"),
        ("src/retry.py#L12C3-L14C9", "12-14"),
        ("src\\retry.py:3-4", "3-4"),
        ("./src/retry.py", "1-18"),
        (".\\src\\.\\retry.py", "1-18"),
        ("src//retry.py", "1-18"),
        ("src/../src/retry.py", "1-18"),
        ("`src/retry.py:12-14`", "12-14"),
        ("'src/retry.py'", "1-18"),
        ("<src/retry.py>", "1-18"),
        ("(src/retry.py:12)", "12-12"),
        ("@src/retry.py", "1-18"),
        ("src/retry.py:", "1-18"),
        ("src/retry.py:12:5:", "12-12"),
        ("src/retry.py:12-14:", "12-14"),
        ("src/retry.py:12,5", "12-12"),
        ("src/retry.py(12)", "12-12"),
        ("src/retry.py(12,5)", "12-12"),
        ("src/retry.py:L12-L14", "12-14"),
        ("src/retry.py#12", "12-12"),
        ("src/retry.py:12–14", "12-14"),
        ("src/retry.py:12..14", "12-14"),
        ("src/retry.py:12:5-14:2", "12-14"),
        ("src/retry.py lines 12-14", "12-14"),
        ("src/retry.py L12-L14", "12-14"),
        ("src/retry.py, line 12", "12-12"),
        ('File "src/retry.py", line 12', "12-12"),
        ('File "src/retry.py", line 12, in wait', "12-12"),
        ("src/retry.py::RetryPolicy", "1-18"),
        ("/src/retry.py:12", "12-12"),
        ("lighthouse/src/retry.py:12-14", "12-14"),
        ("codeinfo://lighthouse/src/retry.py#L2-L4", "2-4"),
        ("vscode://fileHOME/src/retry.py:12", "12-12"),
        ("~/light house/src/retry.py:12", "12-12"),
    ],
)
async def test_a_file_is_read_however_its_place_is_written(
    path: str, lines: str, repositories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repositories))
    home = repositories / "light house"
    is_absolute = path.startswith(("HOME", "URI", "file:", "~", "lighthouse", "vscode", "codeinfo"))
    scope = {} if is_absolute else {"repository": "lighthouse"}
    path = path.replace("HOME", str(home)).replace("URI", home.as_uri())
    assert await read(path, **scope) == f"lighthouse/{RETRY} {lines}"
    assert (await answer("FileOutline", path=path, **scope))["relPath"] == RETRY


@pytest.mark.parametrize(
    ("lines", "read_ones"),
    [("L12-L14", "12-14"), ("12..14", "12-14"), ("12–14", "12-14"), ("line 12", "12-12")],
)
async def test_lines_are_read_however_they_are_written(
    lines: str, read_ones: str, repositories: Path
) -> None:
    found = await read(RETRY, repository="lighthouse", lines=lines)
    assert found == f"lighthouse/{RETRY} {read_ones}"


@pytest.mark.parametrize(
    "written",
    [
        "lighthouse,harbour",
        "lighthouse, harbour",
        "['lighthouse', 'harbour']",
        "[lighthouse, harbour]",
        ['["lighthouse", "harbour"]'],
        "`lighthouse`",
        '"lighthouse"',
        "lighthouse/",
        "HOME",
        "URI",
        "null",
        "None",
    ],
)
async def test_repositories_are_read_however_they_are_written(
    written: str | list[str], repositories: Path
) -> None:
    home = repositories / "light house"
    if isinstance(written, str):
        written = written.replace("HOME", str(home)).replace("URI", home.as_uri())
    (row,) = (await answer("Grep", pattern="^class RetryPolicy", repository=written))["results"]
    assert (row["repo"], row["relPath"]) == ("lighthouse", RETRY)


async def test_a_path_of_another_repository_is_not_read_from_this_one(repositories: Path) -> None:
    path = f"codeinfo://harbour/{RETRY}"
    text = await refusal("ReadFile", path=path, repository="lighthouse")
    assert f"{RETRY} is in the repository 'harbour'" in text
    text = await refusal("ReadFile", "/mcp?repository=harbour", path=f"lighthouse/{RETRY}")
    assert "FILE_NOT_FOUND" in text


async def test_a_file_with_such_a_name_is_found_itself(repositories: Path) -> None:
    name = "back\\slash.txt"
    assert await read(name, repository="lighthouse") == f"lighthouse/{name} 1-1"
    for path in ("v:12", f"{repositories}/light house/v:12"):
        (row,) = (await answer("Grep", pattern="x = 1", path=path))["results"]
        assert row["relPath"] == "v:12/a.py"


async def test_lines_that_are_an_argument_win(repositories: Path) -> None:
    found = await read(f"{RETRY}:2", repository="lighthouse", lines="4-5")
    assert found == f"lighthouse/{RETRY} 4-5"


async def test_an_absolute_path_implies_its_repository_in_every_filter(repositories: Path) -> None:
    home = repositories / "light house"
    for written in (f"{home}/src/", f"{home}/src", f"{home.as_uri()}/src/", f"{home}/src/*.py"):
        for tool, arguments in (
            ("VectorSearch", {"query": "def"}),
            ("Context", {"question": "How long does a retry wait?"}),
            ("Grep", {"pattern": "def|function"}),
            ("FindDefinitions", {"name": "RetryPolicy"}),
            ("ListFiles", {}),
        ):
            rows = (await answer(tool, path=written, **arguments))["results"]
            assert {row["repo"] for row in rows} == {"lighthouse"}
            assert all(row.get("relPath", "src/").startswith("src/") for row in rows)
    whole = await answer("Grep", path=str(home), pattern="def|function", mode="files")
    assert {row["repo"] for row in whole["results"]} == {"lighthouse"}
    like = await answer(
        "RelatedCode", path=f"{home}/src/retry.py:6-8", within_path=f"{repositories}/harbour/src"
    )
    assert {row["repo"] for row in like["results"]} == {"harbour"}
    # Without its end, the other argument says it.
    path, within_path = f"{home}/src/retry.py:6-", f"{repositories}/harbour/src"
    assert like == await answer("RelatedCode", path=path, end_line=8, within_path=within_path)
    path = f"{home}/src/retry.py:1"
    named = {"start_line": 6, "end_line": 8, "within_path": within_path}
    assert like == await answer("RelatedCode", path=path, **named)


async def test_a_link_to_the_folder_is_the_folder(repositories: Path) -> None:
    (repositories / "link").symlink_to("light house")
    assert await read(f"{repositories}/link/src/retry.py:1") == f"lighthouse/{RETRY} 1-1"


@pytest.mark.parametrize("host", ["/home/me/src", "C:\\Users\\me\\src"])
async def test_the_path_on_the_host_is_understood_too(
    host: str, repositories: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CONTAINER_BASE", PurePosixPath(repositories))
    configure(host_ingest_dir=host)
    listed = await answer("ListIngestedRepositories")
    (printed,) = [repo["hostPath"] for repo in listed["repos"] if repo["id"] == "lighthouse"]
    written = [f"{printed}/src/retry.py:1", f"{repositories}/light house/src/retry.py:1"]
    if host.startswith("C:"):
        written += [
            "c:\\users\\ME\\src\\light house\\src\\retry.py:1",
            "file:///C:/Users/me/src/light%20house/src/retry.py#L1",
            "file:///c%3A/Users/me/src/light%20house/src/retry.py#L1",
        ]
    for path in written:
        assert await read(path) == f"lighthouse/{RETRY} 1-1"


async def test_a_definition_may_be_called_none(repositories: Path) -> None:
    text = await refusal("History", repository="lighthouse", symbol="none")
    assert "none is not defined in lighthouse" in text


async def test_a_path_outside_is_refused_with_what_to_write(repositories: Path) -> None:
    home = repositories / "light house"
    assert ": ~/x.py is in no ingested folder" in await refusal("ReadFile", path="~/x.py")
    assert (await answer("Grep", pattern="RetryPolicy", path="none"))["results"] == []
    for path in (
        "/etc/passwd",
        f"{home}/../../etc/passwd",
        f"{home}x/a.py",
        "C:\\x.py",
        "\\\\h\\x",
    ):
        text = await refusal("ReadFile", path=path)
        assert "VALIDATION_FAILED" in text
        assert "is in no ingested folder" in text
    other = await refusal("Grep", pattern="x", path=str(home / RETRY), repository="harbour")
    assert "is in the repository 'lighthouse'" in other
    both = await answer(
        "Grep", pattern="RetryPolicy", path=str(home), repository=["harbour", "lighthouse"]
    )
    assert [row["repo"] for row in both["results"]] == ["lighthouse"]
    assert "NUL" in await refusal("ReadFile", path=f"{home}/a%00\0", repository="lighthouse")


@pytest.mark.parametrize("narrow", ["repository=harbour", "area=harbour", "area=harbour%09src/"])
async def test_a_restricted_address_knows_no_other_folder(narrow: str, repositories: Path) -> None:
    address = f"/mcp?{narrow}"
    assert await read(f"{repositories}/harbour/src/dock.py:1", address) == "harbour/src/dock.py 1-1"
    text = await refusal("ReadFile", address, path=f"{repositories}/light house/{RETRY}")
    assert "is in no ingested folder" in text
    assert "lighthouse" not in text


async def test_a_restricted_address_does_not_tell_which_folder_is_ingested(
    repositories: Path,
) -> None:
    address = "/mcp?tool=Grep&repository=lighthouse&repository=buoy"
    for folder in ("harbour", "nothing"):
        written = f"{repositories}/{folder}/"
        text = await refusal("Grep", address, pattern="x", repository=written)
        assert f"{written!r} may not be looked into here" in text


async def test_several_restricted_repositories_are_implied_too(repositories: Path) -> None:
    address = "/mcp?repository=harbour&repository=lighthouse"
    path = f"{repositories}/light house/{RETRY}:1"
    assert await read(path, address) == f"lighthouse/{RETRY} 1-1"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Grep", {"pattern": "RETRYPOLICY", "ignore_case": "true", "limit": "3"}),
        ("Grep", {"pattern": "RETRYPOLICY", "ignore_case": "True", "context": "0"}),
        ("Grep", {"pattern": "RetryPolicy", "repository": '["lighthouse", "harbour"]'}),
        ("Grep", {"pattern": "RetryPolicy", "fixed": "false", "toolCallId": "call_1"}),
        ("Grep", {"pattern": "RETRYPOLICY", "ignore_case": 1, "fixed": "no", "word": "0"}),
        ("Grep", {"pattern": "RetryPolicy", "path": ["src"], "limit": [3], "cursor": "null"}),
        ("Grep", {"pattern": "RetryPolicy", "mode": "CONTENT", "language": '["python"]'}),
        ("Grep", {"arguments": {"pattern": "RetryPolicy"}}),
        ("Grep", {"input": {"pattern": "RetryPolicy", "limit": "undefined"}}),
        ("Grep", {"pattern": "RetryPolicy", "sessionId": "s", "action": "a", "chatInput": "c"}),
        ("Grep", {"pattern": "RetryPolicy", "_meta": {}, "wait_for_previous": False}),
        ("Grep", {"pattern": "RetryPolicy", "format": "compact"}),
    ],
)
@pytest.mark.parametrize("as_text", [False, True], ids=["object", "JSON text"])
@pytest.mark.parametrize("version", EVERY)
async def test_arguments_are_read_by_their_schema(
    tool: str, arguments: JSON, as_text: bool, version: str, repositories: Path
) -> None:
    sent = json.dumps(arguments) if as_text else arguments
    result = (await ask("tools/call", {"name": tool, "arguments": sent}, version)).result
    assert not result.get("isError"), result
    text = result["content"][0]["text"]
    assert '"relPath":"src/retry.py"' in text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(json.dumps({"pattern": "RetryPolicy"})),
        '```json\n{"pattern": "RetryPolicy"}\n```',
        ' {"pattern": "RetryPolicy"}\n',
    ],
)
async def test_a_text_around_the_arguments_is_taken_away(text: str, repositories: Path) -> None:
    result = (await ask("tools/call", {"name": "Grep", "arguments": text})).result
    assert '"relPath":"src/retry.py"' in result["content"][0]["text"]


@pytest.mark.parametrize("nothing", [[], "", "null", "{}", "[]", None])
async def test_no_arguments_are_an_empty_object(nothing: object, repositories: Path) -> None:
    params = {"name": "ListIngestedRepositories", "arguments": nothing}
    assert "lighthouse" in str((await ask("tools/call", params)).result)


async def test_what_is_looked_for_is_never_changed(repositories: Path) -> None:
    for pattern in ("true", '["a"]', "77", f"{repositories}/x.py:1"):
        assert (await answer("Grep", pattern=pattern, fixed=True))["results"] == []
    for name in ('["a"]', "a.py:1-2", "file:///a.py"):
        assert (await answer("FindDefinitions", name=name))["results"] == []


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("repositry", "; did you mean repository?"),
        ("repo", "; did you mean repository?"),
        ("file_path", "; did you mean path?"),
        ("ignoreCase", "; did you mean ignore_case?"),
        ("zzzz", "; known are: pattern, fixed, ignore_case,"),
    ],
)
async def test_an_unknown_argument_is_refused_with_the_nearest(
    name: str, instead: str, db: None
) -> None:
    assert f"unknown parameter {name}{instead}" in await refusal("Grep", pattern="x", **{name: "y"})


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("text", ["[1]", "{", '"x"', "5", '{"a": NaN}', "[" * 200])
async def test_arguments_that_are_no_object_are_refused(version: str, text: str, db: None) -> None:
    answer = await ask("tools/call", {"name": "Grep", "arguments": text}, version)
    assert answer.error["code"] == -32602


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/chat/", "/mcp/agents/"])
@pytest.mark.parametrize("version", EVERY)
async def test_a_slash_at_the_end_of_the_address_is_ignored(
    path: str, version: str, db: None
) -> None:
    method = "server/discover" if version == STATELESS else "ping"
    assert "result" in (await ask(method, {}, version, path)).json


def test_the_http_api_stays_strict(client: Client, repositories: Path) -> None:
    for path, wrong in (
        ("grep", {"pattern": "x", "ignore_case": "true"}),
        ("grep", {"pattern": "x", "limit": "3"}),
        ("grep", {"pattern": "x", "path": f"{repositories}/light house/src"}),
        ("read-file", {"repository": "lighthouse", "path": f"{RETRY}:12"}),
    ):
        answer = client.post(f"/tools/{path}", wrong, content_type="application/json")
        assert answer.status_code in (400, 404), wrong


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_may_send_them(mode: str, repositories: Path) -> None:
    async with in_this_process("/mcp", mode) as search:
        arguments = {"path": f"{repositories}/light house/{RETRY}:12-13", "toolCallId": "call_1"}
        result = await search.call_tool("ReadFile", arguments)
        assert not result.is_error, result.content
        assert result.structured_content["text"][0].startswith("12: ")
