"""Agents and their commands."""

from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.values.json_schema import BOOLEAN, NOT_BLANK, TEXT, list_schema, object_schema
from apps.site.openapi.chat import ARCHIVED, ID, NOT_STORED, RUNNING, UNAVAILABLE
from apps.site.openapi.operation import Operation

AGENT = object_schema(
    {"name": TEXT}, {"description": TEXT, "disabled": BOOLEAN, "warnings": list_schema(TEXT)}
)
COMMAND = object_schema({"name": TEXT, "description": TEXT, "disabled": BOOLEAN}, {"reason": TEXT})
OPTIONS = {"conversationId": ID, "working_folder": NOT_BLANK}
STARTED = {
    "status": {"const": "started"},
    **dict.fromkeys(("agentName", "conversationId", "inflightId", "modelId"), TEXT),
}

NO_FOLDER = Unavailable("The agents' folder cannot be read.", code="AGENTS_UNAVAILABLE")
NO_AGENT = NotFound("Agent not found", code="AGENT_NOT_FOUND")
INVALID = InvalidInput("instruction is required")
ERRORS = (
    *(INVALID, NO_FOLDER, NO_AGENT, UNAVAILABLE, ARCHIVED, RUNNING),
    InvalidInput("The agent cannot be run.", code="AGENT_INVALID"),
    InvalidInput("The conversation is of another agent.", code="AGENT_MISMATCH"),
    InvalidInput("The folder is wrong.", code="WORKING_FOLDER_INVALID"),
    InvalidInput("The folder does not exist.", code="WORKING_FOLDER_NOT_FOUND"),
)

OPERATIONS = {
    "GET /agents": Operation(
        "All agents. With Accept: text/html, the Agents page",
        {200: object_schema({"agents": list_schema(AGENT)})},
        (NO_FOLDER,),
    ),
    "GET /agents/{agent}/commands": Operation(
        "The commands of an agent",
        {200: object_schema({"commands": list_schema(COMMAND)})},
        (NO_AGENT, Unavailable("The agents' folder cannot be read.", code="AGENT_COMMANDS_FAILED")),
    ),
    "POST /agents/{agent}/run": Operation(
        "Give an agent an instruction",
        {202: object_schema(STARTED, NOT_STORED)},
        ERRORS,
        body=object_schema({"instruction": NOT_BLANK}, OPTIONS),
    ),
    "POST /agents/{agent}/commands/run": Operation(
        "Run a command of an agent",
        {202: object_schema({**STARTED, "commandName": TEXT}, NOT_STORED)},
        (*ERRORS, InvalidInput("The command cannot be run.", code="COMMAND_INVALID")),
        body=object_schema({"commandName": NOT_BLANK}, OPTIONS),
    ),
}
