"""Where the client works: the folder in which it started the bridge, or its roots.

Up to revision 2025-11-25 the bridge asks the client for its roots, and asks its user for what the
server wants agreed to; from 2026-07-28 on, the client answers the server's question itself.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from codeinfo_cli.bridge import messages
from codeinfo_cli.bridge.messages import Message

MODE = "CODEINFO_MCP_WORKSPACE"
# As apps/mcp/workspace.py reads them.
FOLDERS, CONSENT, YES = "codeinfo-workspace", "codeinfo-workspace-ingest", "yes"
QUESTION_META = b'"codeinfo/question"'
MAX_FOLDERS, MAX_LENGTH = 20, 8_000
# How long a call waits for the roots, and a question for the user.
ROOTS_SECONDS, USER_SECONDS = 5.0, 300.0
# Characters that a URI has; the comma separates folders.
OF_URIS = "/:%?#[]@!$&'()*+;=~"


class ClientRequests:
    """Requests to the client."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._count = 0
        self._is_over = False

    async def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the client's result; {} if it refuses, or does not answer in time."""
        if self._is_over:
            return {}
        self._count += 1
        id = f"codeinfo-{self._count}"
        self._waiting[id] = future = asyncio.get_running_loop().create_future()
        try:
            await self._write(
                messages.as_line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            )
            async with asyncio.timeout(seconds):
                result = await future
        except TimeoutError:
            return {}
        finally:
            del self._waiting[id]
        return result if isinstance(result, dict) else {}

    def answered(self, response: Message) -> None:
        """Handle a response of the client. Others than to a question are ignored."""
        value = json.loads(response.line)
        future = self._waiting.get(value["id"]) if isinstance(value.get("id"), str) else None
        if future and not future.done():
            future.set_result(value.get("result"))

    def end(self) -> None:
        """The client answers no more."""
        self._is_over = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)


class Workspace:
    """Tells the server where the client works."""

    def __init__(self, client: ClientRequests, *, is_used: bool) -> None:
        """is_used: False for endpoints that have no use for it"""
        self._client = client
        self._mode = os.environ.get(MODE, "").strip().lower() or "auto"
        self._is_used = is_used and self._mode != "off"
        if self._mode != "auto":
            self._mode = "ask"  # no variable of a project's file is the consent of its user
        self._own = _own_folder()
        self._capabilities: dict[str, Any] = {}
        self._roots: list[str] = []
        self._looking: asyncio.Task[None] | None = None
        self._asked: set[str] = set()

    def greeted(self, hello: Message) -> None:
        """Handle `initialize`: the roots of a client before are no longer known."""
        capabilities = hello.params.get("capabilities")
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._roots = []

    def greeting(self) -> dict[str, str]:
        """Return the headers of `initialize`: the folder, as the roots are not known yet."""
        return self._headers(self._own) if self._is_used else {}

    def look(self) -> None:
        """Ask for the roots. The calls that come meanwhile wait for them."""
        if self._is_used and isinstance(self._capabilities.get("roots"), dict):
            if self._looking:
                self._looking.cancel()
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        roots = (await self._client.ask("roots/list", {}, ROOTS_SECONDS)).get("roots")
        listed = roots if isinstance(roots, list) else []
        uris = [one.get("uri") for one in listed if isinstance(one, dict)]
        files = [uri for uri in uris if isinstance(uri, str) and uri.lower().startswith("file:")]
        self._roots = [quote(uri, safe=OF_URIS) for uri in files[:MAX_FOLDERS]]

    async def headers(self, message: Message) -> dict[str, str]:
        """Return the headers that tell the server where the client works."""
        if not self._is_used or message.method != "tools/call":
            return {}
        folders = self._own
        if not message.is_stateless:
            while (looking := self._looking) and not looking.done():
                await asyncio.wait({looking})
            folders = self._roots or self._own
        return self._headers(folders)

    def _headers(self, folders: list[str]) -> dict[str, str]:
        named = ",".join(folders)
        while len(named) > MAX_LENGTH:
            named = named.rpartition(",")[0]
        return {FOLDERS: named, CONSENT: self._mode} if named else {}

    async def agrees(self, message: Message, line: bytes) -> bool:
        """Ask the user, if the answer to a call has a question that was not asked before."""
        forms = self._capabilities.get("elicitation")
        if QUESTION_META not in line or message.is_stateless or not isinstance(forms, dict):
            return False
        meta = json.loads(line).get("result", {}).get("_meta", {})
        text = meta.get("codeinfo/question")
        if not text or text in self._asked or (forms and "form" not in forms):
            return False
        self._asked.add(text)
        form = {"message": text, "requestedSchema": {"type": "object", "properties": {}}}
        answer = await self._client.ask("elicitation/create", form, USER_SECONDS)
        return answer.get("action") == "accept"


def _own_folder() -> list[str]:
    """Return the current folder. Programs with windows start in `/`: then there is none."""
    try:
        folder = os.getcwdb()
    except FileNotFoundError:
        return []
    return [] if folder == b"/" else [quote(folder)]
