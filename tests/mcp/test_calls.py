"""tools/call: what arguments may look like, and what a failure looks like in each revision."""

import asyncio
import json
from collections.abc import Mapping
from copy import copy
from typing import Any

import pytest
from django.db import OperationalError

from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable
from apps.core.types import JSON
from apps.mcp.arguments import read_arguments
from apps.mcp.types import Call, McpTool
from tests.mcp.endpoint import serving
from tests.mcp.speech import EARLY, EVERY, HANDSHAKE, STATELESS, ask, call

SCHEMA: JSON = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 20},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "repository": {"type": ["string", "array"], "minLength": 1, "items": {"type": "string"}},
        "deep": {"type": "boolean"},
        "id": {"type": "string", "pattern": "^[a-z]+$"},
        "any": {},
        "many": {"type": "array", "items": {}},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("received", "read"),
    [
        *(({"limit": n}, {"limit": 5}) for n in (5, 5.0, "5", " 5 ", "5.0")),
        *(({"limit": n}, {"limit": 20}) for n in (21, 1e9, "10000", 10**400)),
        *(({"limit": n}, {"limit": 1}) for n in (-3, "-3", -(10**400))),
        *(({"limit": n}, {}) for n in (0, "0", "", None)),
        *(({"share": n}, {"share": 0.5}) for n in (0.5, "0.5", "5e-1")),
        ({"share": 0}, {"share": 0}),
        ({"share": "2"}, {"share": 1}),
        *(({"repository": n}, {}) for n in (None, "")),
        ({"repository": ["a", "b"]}, {"repository": ["a", "b"]}),
        ({"repository": "5"}, {"repository": "5"}),
        *(({"any": n}, {"any": n}) for n in (None, "", 0, "7", [None])),
        *(({"deep": n}, {"deep": True}) for n in (True, "true", " True ")),
        ({"deep": "false"}, {"deep": False}),
        *(({"many": n}, {"many": ["a"]}) for n in ("a", ["a"], '["a"]')),
        ({"many": 5}, {"many": [5]}),
        ({"repository": ' ["a", "b"]'}, {"repository": ["a", "b"]}),
        *(({"repository": n}, {"repository": n}) for n in ("[1]", "[a", "{}")),
        *(({"query": n}, {"query": n}) for n in ("true", '["a"]', "[")),
        ({"toolCallId": "1", "_meta": {}, "sessionId": 2}, {}),
    ],
)
def test_arguments_written_by_models_are_corrected(received: JSON, read: JSON) -> None:
    found = read_arguments(_tool(), {"query": "5"} | received)
    expected = {"query": "5"} | read
    assert found == expected
    assert [type(value) for value in found.values()] == [type(v) for v in expected.values()]


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        ({"query": None}, "query: None is not of type 'string'"),
        ({"query": ""}, "query: '' should be non-empty"),
        ({"query": 5}, "query: 5 is not of type 'string'"),
        *(({"query": "x", "limit": n}, "limit: ") for n in (True, False, 2.5, "five", "nan", [])),
        ({"query": "x", "deep": "maybe"}, "deep: 'maybe' is not of type 'boolean'"),
        ({"query": "x", "repository": [5]}, "repository.0: 5 is not of type 'string'"),
        ({}, "query is required"),
        ({"query": "x", "path": "y"}, "unknown parameter path; known are: query, limit"),
        *(({"query": "x", "id": n}, f"id: {n!r} does not match") for n in ("A", "a\n")),
        ({"query": "x", "deep": "y" * 1000}, "deep: breaks type boolean"),
    ],
)
def test_every_invalid_argument_is_named(received: JSON, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_arguments(_tool(), received)
    assert any(problem in detail for detail in refused.value.details["details"])
    assert len(refused.value.message) < 500


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_arguments(_tool(), {"limit": "many", "deep": 2})
    assert len(refused.value.details["details"]) == 3


def test_a_tool_that_checks_its_arguments_receives_them_corrected_and_unchecked() -> None:
    tool = _tool(checks_arguments=True)
    arguments = {"query": 5, "limit": "50", "share": "many", "deep": None}
    assert read_arguments(tool, arguments) == {"query": 5, "limit": 20, "share": "many"}
    with pytest.raises(InvalidInput) as refusal:
        read_arguments(tool, {"query": 5, "path": "y"})
    (problem,) = refusal.value.details["details"]
    assert "unknown parameter path; known are: query, limit" in problem


@pytest.mark.parametrize("version", EVERY)
async def test_search_arguments_are_refused_in_the_words_of_the_contract(version: str) -> None:
    """contract.md §4.2: the check of the search is the only one."""
    problems = [
        "query is required",
        "repository must be a non-empty string when provided",
        "limit must be an integer",
    ]
    wrong = {"query": " ", "repository": [5], "limit": "many"}
    params = {"name": "VectorSearch", "arguments": wrong}
    answer = await ask("tools/call", params, version)
    if version in EARLY:
        assert answer.error["data"]["details"] == problems
    else:
        assert f"VALIDATION_FAILED: {', '.join(problems)}" in answer.result["content"][0]["text"]


def _tool(*, checks_arguments: bool = False) -> McpTool:
    return McpTool("work", "Work", "Works.", SCHEMA, None, _work, checks_arguments=checks_arguments)


async def _work(arguments: Mapping[str, Any], call: Call) -> JSON:
    return {"read": dict(arguments), "none": None, "version": call.version}


@pytest.mark.parametrize("version", EVERY)
async def test_an_answer_is_one_text_and_the_same_object(version: str) -> None:
    async with serving(_work, SCHEMA):
        result = (await call("work", version, query="é", limit="50")).result
    # Before 2025-06-18 requests do not name their revision.
    revision = max(version, "2025-03-26")
    whole = {"read": {"query": "é", "limit": 20}, "none": None, "version": revision}
    assert result["structuredContent"] == whole
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    assert result["content"] == [{"type": "text", "text": text}]
    assert "isError" not in result or result["isError"] is False


# The number is that of revisions up to 2025-06-18; None if they, too, get a result.
FAILURES: list[tuple[CodeinfoError, int | None, str]] = [
    (InvalidInput("No.", details={"details": ["No."]}), -32602, "VALIDATION_FAILED"),
    (InvalidInput("Folder is gone.", code="NOT_READABLE"), -32602, "NOT_READABLE"),
    (NotFound("REPO_NOT_FOUND: no", code="REPO_NOT_FOUND", details={"repo": "x"}), None, "REPO"),
    (Conflict("INGEST_REQUIRED: run", code="INGEST_REQUIRED"), None, "INGEST_REQUIRED: run"),
    (Conflict("Archived.", code="CONVERSATION_ARCHIVED"), None, "CONVERSATION_ARCHIVED"),
    (Conflict("One runs.", code="RUN_IN_PROGRESS"), None, "RUN_IN_PROGRESS: One runs."),
    (Conflict("One runs.", code="BUSY"), None, "BUSY: One runs. Wait a moment"),
    (
        Unavailable("Not there", code="EMBED_MODEL_MISSING"),
        None,
        "EMBED_MODEL_MISSING: Not there. ",
    ),
    (Unavailable("Not there", code="CHROMA_UNAVAILABLE"), None, "CHROMA_UNAVAILABLE: "),
    (Unavailable("No model", code="CODE_INFO_LLM_UNAVAILABLE"), -32001, "CODE_INFO_LLM"),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("error", "number", "words"), FAILURES)
async def test_a_failed_call_is_a_result_except_two_kinds_in_early_revisions(
    version: str, error: CodeinfoError, number: int | None, words: str
) -> None:
    async def fail(arguments: Mapping[str, Any], call: Call) -> JSON:
        raise copy(error)  # the traceback of one that stays would keep threads of the request

    async with serving(fail):
        answer = await call("work", version)
    assert answer.status == 200
    if version in EARLY and number:
        assert answer.error["code"] == number
        assert answer.error["data"] == {
            "code": error.code,
            "message": error.message,
            **error.details,
        }
        return
    assert answer.result["isError"] is True
    assert answer.result["content"][0]["text"].startswith(words)
    assert "structuredContent" not in answer.result


@pytest.mark.parametrize("version", EVERY)
async def test_invalid_arguments_are_reported_like_a_failed_tool(version: str) -> None:
    async with serving(_work, SCHEMA):
        answer = await call("work", version, limit="many")
    if version in EARLY:
        assert (answer.error["code"], answer.error["message"]) == (-32602, "Invalid params")
        assert answer.error["data"]["code"] == "VALIDATION_FAILED"
        assert "query is required" in answer.error["data"]["details"]
        return
    text = answer.result["content"][0]["text"]
    assert answer.result["isError"] is True and text.startswith("VALIDATION_FAILED: ")
    assert "query is required" in text and text.endswith("call again.")


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_closed_gate_has_an_error_code_per_revision(version: str, method: str) -> None:
    async def gate(arguments: Mapping[str, Any]) -> None:
        details = {"hint": "Set CODEINFO_MCP_PROVIDER."}
        raise Unavailable("No model.", code="CODE_INFO_LLM_UNAVAILABLE", details=details)

    async with serving(_work, gate=gate):
        assert (await ask("server/discover")).status == 200
        params = {"name": "work"} if method == "tools/call" else {}
        answer = await ask(method, params, version)
    assert answer.error["message"] == "CODE_INFO_LLM_UNAVAILABLE"
    assert answer.error["data"] == {
        "code": "CODE_INFO_LLM_UNAVAILABLE",
        "reason": "No model.",
        "hint": "Set CODEINFO_MCP_PROVIDER.",
    }
    stateless = version == STATELESS
    assert (answer.status, answer.error["code"]) == ((503, 503) if stateless else (200, -32001))


BUGS = [ZeroDivisionError("secret"), TimeoutError("secret"), {"n": float("nan")}]


@pytest.mark.parametrize("version", HANDSHAKE)
@pytest.mark.parametrize("bug", BUGS, ids=repr)
async def test_a_bug_is_reported_without_its_message(version: str, bug: Exception | JSON) -> None:
    async def fail(arguments: Mapping[str, Any], call: Call) -> JSON:
        if isinstance(bug, Exception):
            raise copy(bug)
        return bug

    async with serving(fail):
        answer = await call("work", version)
    assert answer.status == 200 and b"secret" not in answer.body
    assert answer.result["content"][0]["text"].startswith("INTERNAL_ERROR: ")
    assert answer.headers["x-request-id"].encode() in answer.body


async def test_a_file_name_that_is_not_utf_8_is_replaced_in_the_answer() -> None:
    async def odd(arguments: Mapping[str, Any], call: Call) -> JSON:
        return {"relPath": "caf\udce9.py"}

    async with serving(odd):
        result = (await call("work")).result
    assert result["structuredContent"] == {"relPath": "caf?.py"}
    assert json.loads(result["content"][0]["text"]) == {"relPath": "caf?.py"}


async def test_an_unavailable_database_is_reported() -> None:
    async def fail(arguments: Mapping[str, Any], call: Call) -> JSON:
        raise OperationalError("database is locked")

    async with serving(fail):
        text = (await call("work")).result["content"][0]["text"]
    assert text == "DATABASE_UNAVAILABLE: The database is busy or away. Call again in a moment."


async def test_a_missing_capability_is_named(suite_tools: None) -> None:
    answer = await call("test_missing_capability")
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": {"sampling": {}}}
    # Older revisions have no number for it.
    text = (await call("test_missing_capability", "2025-11-25")).result["content"][0]["text"]
    assert text == "MISSING_CLIENT_CAPABILITY: Sampling is needed."


async def test_a_call_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    async def never(arguments: Mapping[str, Any], call: Call) -> JSON:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.version)
        return {}

    monkeypatch.setattr("apps.mcp.calls.CALL_SECONDS", 0.01)
    async with serving(never):
        answers = [await call("work"), await call("work", "2025-03-26")]
    for answer in answers:
        assert answer.result["content"][0]["text"].startswith("TIMED_OUT: ")
    assert ended == [STATELESS, "2025-03-26"]
