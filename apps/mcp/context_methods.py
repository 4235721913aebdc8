"""The methods of resources, prompts and completion, for every revision.

An endpoint that offers none of them does not know these methods.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from apps.core.errors import CodeinfoError, InvalidInput, NotFound
from apps.core.types import JSON
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.specification import INVALID_PARAMS
from apps.mcp.types import Completer, McpEndpoint, McpPrompt, McpResources
from apps.mcp.wire import Message, RpcError

Handler = Callable[[McpEndpoint, ProtocolVersion, Message], Awaitable[JSON]]

# Lists are the same for every client, but reading them may require a token.
CACHING = {"ttlMs": 60_000, "cacheScope": "private"}
# A file may change at any time.
NOT_CACHED = CACHING | {"ttlMs": 0}
# Up to 2025-11-25, of a resource that does not exist; then it is INVALID_PARAMS.
RESOURCE_NOT_FOUND = -32002
# The longest text that is completed, and the most arguments beside it.
MAX_TEXT, MAX_OTHERS = 1_000, 20


def context_methods(endpoint: McpEndpoint) -> Mapping[str, Handler]:
    """The methods of what the endpoint offers besides tools, by name."""
    resources = RESOURCE_METHODS if endpoint.resources else {}
    prompts = PROMPT_METHODS if endpoint.prompts else {}
    completion = {"completion/complete": _complete} if resources or prompts else {}
    return {**resources, **prompts, **completion}


def capabilities(endpoint: McpEndpoint, protocol: ProtocolVersion) -> JSON:
    """The capabilities for what the endpoint offers besides tools."""
    offered: JSON = {}
    if endpoint.resources:
        has_stream = protocol.modern and bool(endpoint.resources.topic)
        offered["resources"] = {"subscribe": False, "listChanged": has_stream}
    if endpoint.prompts:
        offered["prompts"] = {"listChanged": False}
    return offered | ({"completions": {}} if offered else {})


def refuse_cursor(message: Message) -> None:
    """Raise RpcError if a list that is one page gets a cursor: no cursor was ever issued."""
    if message.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")


# --- resources ------------------------------------------------------------------------------------


def _resources(endpoint: McpEndpoint) -> McpResources:
    assert endpoint.resources is not None, "the method is known to this endpoint"
    return endpoint.resources


async def _list_resources(
    endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message
) -> JSON:
    page = await _resources(endpoint).page(message.params.get("cursor"))
    following = {} if page.cursor is None else {"nextCursor": page.cursor}
    return {"resources": list(page.resources), **following, **CACHING}


async def _list_templates(
    endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message
) -> JSON:
    refuse_cursor(message)
    templates = [template.as_wire() for template in _resources(endpoint).templates]
    return {"resourceTemplates": templates, **CACHING}


async def _read_resource(
    endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message
) -> JSON:
    uri = message.params["uri"]
    try:
        contents = await _resources(endpoint).read(uri)
    except NotFound as error:
        code = INVALID_PARAMS if protocol.modern else RESOURCE_NOT_FOUND
        raise _refused(code, f"Resource not found. {error.message}", error, uri=uri) from error
    except InvalidInput as error:
        raise _refused(INVALID_PARAMS, error.message, error, uri=uri) from error
    return {"contents": list(contents), **NOT_CACHED}


RESOURCE_METHODS: Mapping[str, Handler] = {
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}


# --- prompts --------------------------------------------------------------------------------------


async def _list_prompts(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    refuse_cursor(message)
    return {"prompts": [prompt.as_wire() for prompt in endpoint.prompts], **CACHING}


async def _get_prompt(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    prompt = _prompt_named(endpoint, message.params["name"])
    try:
        arguments = read_arguments(prompt, message.params.get("arguments") or {})
        messages = await prompt.messages(arguments)
    except (InvalidInput, NotFound) as error:
        raise _refused(INVALID_PARAMS, error.message, error) from error
    return {"description": prompt.description, "messages": list(messages)}


PROMPT_METHODS: Mapping[str, Handler] = {"prompts/list": _list_prompts, "prompts/get": _get_prompt}


def read_arguments(prompt: McpPrompt, received: Mapping[str, str]) -> dict[str, str]:
    """The arguments that have a value. Raises InvalidInput with all problems."""
    known = {argument.name: argument for argument in prompt.arguments}
    values = {name: value.strip() for name, value in received.items() if value.strip()}
    problems = [f"{name[:100]!r} is not an argument" for name in received if name not in known]
    for argument in prompt.arguments:
        value = values.get(argument.name, "")
        if argument.required and not value:
            problems.append(f"{argument.name} is required")
        if len(value) > argument.max_length:
            problems.append(f"{argument.name} must have at most {argument.max_length:,} characters")
    if problems:
        text = f"{'; '.join(problems)}; known are: {', '.join(known) or 'none'}"
        raise InvalidInput(text, details={"details": problems})
    return values


def _prompt_named(endpoint: McpEndpoint, name: str) -> McpPrompt:
    prompts = {prompt.name: prompt for prompt in endpoint.prompts}
    if name not in prompts:
        known = {"prompts": sorted(prompts)}
        raise RpcError(INVALID_PARAMS, f"Unknown prompt {name[:100]}", data=known)
    return prompts[name]


# --- completion -----------------------------------------------------------------------------------


async def _complete(endpoint: McpEndpoint, protocol: ProtocolVersion, message: Message) -> JSON:
    # Simple clients leave the operator of a template's variable in its name.
    name = message.params["argument"]["name"].lstrip("+#./;?&")
    beginning = message.params["argument"]["value"]
    completers = _completers(endpoint, message.params["ref"])
    if name not in completers:
        known = {"arguments": sorted(completers)}
        raise RpcError(INVALID_PARAMS, f"Unknown argument {name[:100]}", data=known)
    completer = completers[name]
    others = (message.params.get("context") or {}).get("arguments") or {}
    if completer is None or len(beginning) > MAX_TEXT or len(others) > MAX_OTHERS:
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    completion = await completer(beginning, others)
    has_more = completion.total > len(completion.values)
    return {
        "completion": {
            "values": list(completion.values),
            "total": completion.total,
            "hasMore": has_more,
        }
    }


def _completers(endpoint: McpEndpoint, ref: Mapping[str, Any]) -> Mapping[str, Completer | None]:
    """The arguments of what is referred to, by name. Raises RpcError if it is unknown."""
    if ref["type"] == "ref/prompt":
        prompt = _prompt_named(endpoint, ref["name"])
        return {argument.name: argument.completer for argument in prompt.arguments}
    templates = endpoint.resources.templates if endpoint.resources else ()
    for template in templates:
        if template.uri_template == ref["uri"]:
            return template.completers
    known = {"templates": [template.uri_template for template in templates]}
    raise RpcError(INVALID_PARAMS, f"Unknown template {ref['uri'][:100]}", data=known)


def _refused(code: int, message: str, error: CodeinfoError, **data: str) -> RpcError:
    facts = {"code": error.code, "message": error.message, **error.details, **data}
    return RpcError(code, message, data=facts)
