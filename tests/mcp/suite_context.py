"""The resources and prompts that the official conformance suite asks for, as it describes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.mcp.completion import matching
from apps.mcp.types import (
    Completion,
    McpEndpoint,
    McpPrompt,
    McpResources,
    PromptArgument,
    ResourcePage,
    ResourceTemplate,
)
from tests.mcp.suite_tools import IMAGE, PNG, resource, text

TEXT = {"uri": "test://static-text", "mimeType": "text/plain", "text": "Static text."}
BINARY = {"uri": "test://static-binary", "mimeType": "image/png", "blob": PNG}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def listed(content: Mapping[str, str]) -> JSON:
    uri, kind = content["uri"], content["mimeType"]
    return {"uri": uri, "name": uri, "description": "Conformance", "mimeType": kind}


def of_suite(uri: str) -> JSON | None:
    if match := TEMPLATE.fullmatch(uri):
        return {"uri": uri, "mimeType": "application/json", "text": f'{{"id": "{match[1]}"}}'}
    return next((dict(each) for each in (TEXT, BINARY) if each["uri"] == uri), None)


def with_suite_resources(own: McpResources | None) -> McpResources:
    """The resources of an endpoint, and those of the suite on the first page."""

    async def page(cursor: str | None) -> ResourcePage:
        rest = await own.page(cursor) if own else ResourcePage(())
        first = [] if cursor else [listed(TEXT), listed(BINARY)]
        return ResourcePage([*first, *rest.resources], rest.cursor)

    async def read(uri: str) -> Sequence[JSON]:
        if content := of_suite(uri):
            return [content]
        if own is None:
            raise NotFound("There is no such resource.")
        return await own.read(uri)

    template = ResourceTemplate("test://template/{id}/data", "data", "Data", "Conformance")
    templates = (*(own.templates if own else ()), template)
    if own is None:
        return McpResources(page, read, templates)
    return replace(own, page=page, read=read, templates=templates)


def said(item: JSON) -> JSON:
    return {"role": "user", "content": item}


async def simple(arguments: Mapping[str, str]) -> Sequence[JSON]:
    return [said(text("This is a simple prompt for testing."))]


async def with_arguments(arguments: Mapping[str, str]) -> Sequence[JSON]:
    values = f"arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
    return [said(text(f"Prompt with arguments: {values}"))]


async def with_resource(arguments: Mapping[str, str]) -> Sequence[JSON]:
    words = "Embedded resource content for testing."
    embedded = resource(arguments["resourceUri"], "text/plain", words)
    return [said(embedded), said(text("Please process the embedded resource above."))]


async def with_image(arguments: Mapping[str, str]) -> Sequence[JSON]:
    return [said(IMAGE), said(text("Please analyze the image above."))]


async def cities(beginning: str, others: Mapping[str, str]) -> Completion:
    return matching(("paris", "park", "party"), beginning)


def argument(name: str) -> PromptArgument:
    return PromptArgument(name, name, "Conformance", required=True, completer=cities)


PROMPTS: Sequence[McpPrompt] = (
    McpPrompt("test_simple_prompt", "Simple", "Conformance", (), simple),
    McpPrompt(
        "test_prompt_with_arguments",
        "Arguments",
        "Conformance",
        (argument("arg1"), argument("arg2")),
        with_arguments,
    ),
    McpPrompt(
        "test_prompt_with_embedded_resource",
        "Resource",
        "Conformance",
        (argument("resourceUri"),),
        with_resource,
    ),
    McpPrompt("test_prompt_with_image", "Image", "Conformance", (), with_image),
)


def with_suite_context(endpoint: McpEndpoint) -> McpEndpoint:
    return replace(
        endpoint,
        resources=with_suite_resources(endpoint.resources),
        prompts=(*endpoint.prompts, *PROMPTS),
    )
