"""codebase_question of a client that says where it works."""

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from apps.agents.events import TextDelta, ToolCallRequested
from apps.agents.messages import ToolCall
from apps.conversations.models import Conversation
from apps.mcp.question import CODEBASE_QUESTION
from tests.mcp.doors.conftest import Caller
from tests.mcp.doors.workspace import DOCK, found
from tests.support.ingested import ingest, write_files
from tests.support.scripted import ScriptedProvider

pytestmark = [
    pytest.mark.door,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nothing_left_running"),
]

Scripted = Callable[..., ScriptedProvider]


@pytest.fixture
def two(folder: Path, transactional_db: None) -> Path:
    """A folder with the ingested repositories `quay` and `mole`."""
    for name in ("quay", "mole"):
        ingest(write_files(folder / name, DOCK), name)
    return folder


async def test_a_question_is_about_the_folder_of_the_client(
    scripted: Scripted, caller: Caller, two: Path
) -> None:
    look = ToolCallRequested(ToolCall("call-1", "VectorSearch", {"query": "tie a ship"}))
    end = [TextDelta("There.")]
    model = scripted([look], end, [look], end, [look], end, [look], end)

    async def searched(**more: str) -> set[str]:
        arguments = {"question": "Where are ships tied?"} | more
        where = two / "mole" / "src"
        answer = await found("codebase_question", where, address="/mcp/chat", **arguments)
        jsonschema.validate(answer, CODEBASE_QUESTION.output_schema)
        return {name for name in ("quay", "mole") if name in model.requests[-1].messages[-1].text}

    assert await searched() == {"mole"}
    assert (await Conversation.objects.aget()).flags["scope"] == ["mole"]
    assert await searched(repository="quay", conversationId="own") == {"quay"}
    # What a conversation is about stays, wherever the client works.
    assert await searched(conversationId="own") == {"quay"}
    assert await searched(repository="*", conversationId="own") == {"mole", "quay"}


async def test_an_answer_says_why_it_is_not_about_the_folder(
    scripted: Scripted, caller: Caller, two: Path
) -> None:
    scripted([TextDelta("Nowhere.")])
    where = {"address": "/mcp/chat", "question": "Where are ships tied?"}
    answer = await found("codebase_question", two, **where)
    jsonschema.validate(answer, CODEBASE_QUESTION.output_schema)
    assert str(two) in answer["workspace"] and "only its owner" in answer["workspace"]
