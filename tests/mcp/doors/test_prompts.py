"""The prompts of /mcp, and completion of their arguments and of the templates."""

from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from apps.core.types import JSON
from apps.index.models import Root, SourceFile
from tests.mcp.speech import EVERY, STATELESS, Answer, ask
from tests.support.ingested import SAMPLE, ingest, ingest_sample, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

TEMPLATE = "codeinfo://{repository}/{+path}"
VALID = {
    "explain": {"path": "src/retry.py"},
    "trace": {"from": "main", "to": "should_retry"},
    "review": {"diff": "-a\n+b"},
}


@pytest.fixture(autouse=True)
def lighthouse(folder: Path, transactional_db: None) -> Path:
    ingest_sample(folder)
    return folder


async def get(name: str, version: str = STATELESS, **arguments: str) -> list[JSON]:
    answer = await ask("prompts/get", {"name": name, "arguments": arguments}, version)
    messages: list[JSON] = answer.result["messages"]
    return messages


async def refused(name: str, **arguments: str) -> JSON:
    return (await ask("prompts/get", {"name": name, "arguments": arguments})).error


def words(messages: list[JSON]) -> str:
    return messages[0]["content"]["text"]


@pytest.mark.parametrize("version", EVERY)
async def test_every_prompt_names_our_tools_and_asks_for_citations(version: str) -> None:
    prompts = (await ask("prompts/list", {}, version)).result["prompts"]
    assert [prompt["name"] for prompt in prompts] == list(VALID)
    tools = (await ask("tools/list", {}, version)).result["tools"]
    names = {tool["name"] for tool in tools}
    for prompt in prompts:
        assert prompt["description"] and all(each["description"] for each in prompt["arguments"])
        text = words(await get(prompt["name"], version, **VALID[prompt["name"]]))
        assert {"FindReferences", "VectorSearch"} <= {name for name in names if name in text}
        assert "`repo/path:start-end`" in text
        assert "never instructions" in text


@pytest.mark.parametrize("given", [{}, {"repository": "lighthouse"}])
async def test_a_named_file_is_embedded(given: dict[str, str]) -> None:
    text, file = await get("explain", path="src/retry.py", **given)
    resource = file["content"]["resource"]
    assert resource["uri"] == "codeinfo://lighthouse/src/retry.py"
    assert resource["text"] + "\n" == SAMPLE["src/retry.py"]
    (_, folder) = await get("review", path="src", **given)
    assert folder["content"]["resource"]["uri"] == "codeinfo://lighthouse/src/"
    assert ("'lighthouse'" in words([text])) is bool(given)


async def test_a_diff_follows_the_instructions() -> None:
    first, change = await get("review", diff="-a\n+b")
    assert "1. Call Impact with the change as `patch`" in first["content"]["text"]
    assert change["content"]["text"].endswith("-a\n+b")


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("explain", {}, "path or symbol is required"),
        ("explain", {"path": " "}, "path or symbol is required"),
        ("trace", {"from": "a"}, "to is required"),
        ("review", {"repository": "lighthouse"}, "path or diff is required"),
        ("explain", {"symbol": "a", "depth": "2"}, "'depth' is not an argument"),
        ("explain", {"symbol": "a" * 300}, "symbol must have at most 255 characters"),
    ],
)
async def test_wrong_arguments_are_named(
    name: str, arguments: dict[str, str], problem: str
) -> None:
    error = await refused(name, **arguments)
    assert error["code"] == -32602
    assert problem in error["data"]["details"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "none.py"}, "FILE_NOT_FOUND"),
        ({"path": "none.py", "repository": "lighthouse"}, "FILE_NOT_FOUND"),
        ({"path": "src/retry.py", "repository": "other"}, "REPO_NOT_FOUND"),
    ],
)
async def test_what_is_not_ingested_cannot_be_explained(
    arguments: dict[str, str], code: str
) -> None:
    error = await refused("explain", **arguments)
    assert (error["code"], error["data"]["code"]) == (-32602, code)


async def test_a_path_of_several_repositories_needs_one(tmp_path: Path) -> None:
    files = {"src/retry.py": "x = 1\n"}
    await sync_to_async(ingest)(write_files(tmp_path / "other", files))
    error = await refused("explain", path="src/retry.py")
    assert error["code"] == -32602
    assert "lighthouse" in error["message"] and "other" in error["message"]
    _, file = await get("explain", path="src/retry.py", repository="other")
    assert file["content"]["resource"]["text"] == "x = 1"


async def test_an_unknown_prompt_lists_the_known_ones() -> None:
    error = await refused("none")
    assert (error["code"], error["data"]["prompts"]) == (-32602, sorted(VALID))


# --- completion -----------------------------------------------------------------------------------

ON_PROMPT: JSON = {"type": "ref/prompt", "name": "explain"}
ON_TEMPLATE: JSON = {"type": "ref/resource", "uri": TEMPLATE}


async def complete(
    ref: JSON, name: str, value: str, version: str = STATELESS, **others: str
) -> Answer:
    context = {"context": {"arguments": others}} if others else {}
    params = {"ref": ref, "argument": {"name": name, "value": value}} | context
    return await ask("completion/complete", params, version)


async def values(ref: JSON, name: str, value: str, **others: str) -> list[str]:
    found: list[str] = (await complete(ref, name, value, **others)).result["completion"]["values"]
    return found


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("ref", [ON_PROMPT, ON_TEMPLATE])
async def test_repositories_and_paths_are_completed(ref: JSON, version: str) -> None:
    answer = await complete(ref, "repository", "LIGHT", version)
    expected = {"values": ["lighthouse"], "total": 1, "hasMore": False}
    assert answer.result["completion"] == expected
    found = await complete(ref, "path", "SRC/", version, repository="lighthouse")
    assert found.result["completion"]["values"] == ["src/retry.py", "src/store.js"]


async def test_the_best_paths_are_first(tmp_path: Path) -> None:
    files = dict.fromkeys(("b/re.txt", "core/x.txt", "re/x.txt", "a/RE.txt", "100%/x.txt"), "x\n")
    await sync_to_async(ingest)(write_files(tmp_path / "other", files))
    assert await values(ON_TEMPLATE, "path", "re", repository="other") == [
        *("re/x.txt", "a/RE.txt", "b/re.txt", "core/x.txt")
    ]
    assert await values(ON_TEMPLATE, "+path", "0%", repository="other") == ["100%/x.txt"]
    assert await values(ON_TEMPLATE, "path", "_", repository="other") == []
    # Without a repository, of all of them.
    assert await values(ON_TEMPLATE, "path", "retry") == ["src/retry.py"]
    assert await values(ON_TEMPLATE, "path", "", repository="none") == []


async def test_languages_are_those_of_the_repository(tmp_path: Path) -> None:
    await sync_to_async(ingest)(write_files(tmp_path / "go", {"main.go": "package main\n"}))
    assert await values(ON_PROMPT, "language", "g", repository="lighthouse") == []
    assert await values(ON_PROMPT, "language", "GO") == ["go"]
    assert await values(ON_PROMPT, "language", "script", repository="lighthouse") == ["javascript"]


async def test_at_most_a_hundred_values_are_returned_of_many(lighthouse: Path) -> None:
    def add() -> None:
        root = Root.objects.get()
        row = SourceFile.objects.filter(root=root).first()
        assert row is not None
        fields = {"root": root, "run_id": row.run_id, "since": row.since}
        rows = [SourceFile(path=f"many/f{n:05}.py", **fields) for n in range(2_000)]
        SourceFile.objects.bulk_create(rows)
        # A file that a later run removed is not live.
        SourceFile.objects.create(path="many/f.py", until=row.since, **fields)

    await sync_to_async(add)()
    found = (await complete(ON_TEMPLATE, "path", "f0", repository="lighthouse")).result
    assert found["completion"]["values"] == [f"many/f{n:05}.py" for n in range(100)]
    assert (found["completion"]["total"], found["completion"]["hasMore"]) == (2_000, True)
    assert await values(ON_TEMPLATE, "path", "f01999") == ["many/f01999.py"]
    assert await values(ON_TEMPLATE, "path", "many/f.") == []


@pytest.mark.parametrize("value", ["\0", "x" * 5_000, "%_\\'\"", "é" * 10])
async def test_odd_text_completes_to_nothing(value: str) -> None:
    for name in ("repository", "path", "language"):
        assert await values(ON_PROMPT, name, value) == []


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        ({"type": "ref/prompt", "name": "none"}, "path"),
        ({"type": "ref/resource", "uri": "none://{x}"}, "x"),
        (ON_PROMPT, "none"),
        (ON_TEMPLATE, "language"),
        ({"type": "ref/none", "name": "explain"}, "path"),
    ],
)
async def test_what_cannot_be_completed_is_refused(ref: JSON, name: str) -> None:
    assert (await complete(ref, name, "x")).error["code"] == -32602


async def test_an_argument_of_free_text_has_no_values() -> None:
    assert await values({"type": "ref/prompt", "name": "trace"}, "from", "x") == []
