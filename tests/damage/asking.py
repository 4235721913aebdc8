"""What a client is answered, and whether it is told that something is lost."""

from collections.abc import Mapping
from typing import Any

import httpx

from apps.tools.tools import TOOLS
from tests.browser.product import Product
from tests.support.calls import CALLS

PATIENCE = 60
PARTS = ("database", "disk", "index", "worker")
# What tells of the disk, of a run or of the way, and not of the result.
ASIDE = ("changed", "slow", "generations", "generation")
OF_RUNS = ("lastIngestAt", "state", "lastError")
TURNS = "turns"

Answers = Mapping[str, Any]


class Told(str):
    """An answer that says that it lacks something, or an error with a code."""

    __slots__ = ()


def ask(product: Product) -> Answers:
    """The answer of each tool, and the turns of the conversation `one`."""
    with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
        return {tool.name: _called(client, tool.name) for tool in TOOLS} | {TURNS: _turns(client)}


def untold(product: Product, before: Answers) -> Answers:
    """The answers that are others than before although nothing tells why."""
    answers = ask(product)
    differing = {name: answer for name, answer in answers.items() if answer != before[name]}
    silent = {n: a for n, a in differing.items() if not isinstance(a, Told)}
    return {} if silent and health(product) else silent


def health(product: Product) -> Mapping[str, Any]:
    """The parts of `/health` that are not well."""
    answer = httpx.get(f"{product.url}/health", timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    parts = answer.json()["parts"]
    return {name: parts[name] for name in PARTS if parts[name]["state"] != "ok"}


def _called(client: httpx.Client, name: str) -> Any:
    call = {"name": name, "arguments": CALLS[name]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    response = client.post("/mcp", json=body, headers=headers)
    if response.status_code != 200 or "error" in response.json():
        return _error(response)
    result = response.json()["result"]
    if result.get("isError"):
        return Told(result["content"][0]["text"])
    answer = result["structuredContent"]
    if answer.get("degraded") or answer.get("slow"):
        return Told(answer.get("degraded") or "slow")
    if name == "Context":  # its callers are what is parsed within .3 s
        answer = {"results": answer["results"]}
    return _plain(answer)


def _turns(client: httpx.Client) -> Any:
    response = client.get("/conversations/one/turns")
    if response.status_code != 200:
        return _error(response)
    return [turn["content"] for turn in response.json()["items"]]


def _error(response: httpx.Response) -> Any:
    """An error that a client can tell from an answer; as it is, if it has no code."""
    error = response.json()
    if isinstance(error.get("error"), dict):  # of JSON-RPC
        error = error["error"]
    is_typed = isinstance(error.get("code"), int | str) or "error" in error
    if response.status_code == 404 or not is_typed:
        return response.text
    return Told(response.text)


def _plain(answer: Any) -> Any:
    """Without what differs between two right answers."""
    if isinstance(answer, dict):
        return {k: _plain(v) for k, v in answer.items() if k not in (*ASIDE, *OF_RUNS)}
    return [_plain(item) for item in answer] if isinstance(answer, list) else answer


def chat(product: Product, message: str = "where are retries") -> None:
    """A turn of the conversation `one`."""
    body = {"provider": "builtin", "model": "search", "conversationId": "one"}
    body |= {"message": message}
    headers = {"accept": "text/event-stream"}
    answer = httpx.post(f"{product.url}/chat", json=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
