"""The provider for OpenAI-compatible servers (Chat Completions, `GET /models`).

Environment or Providers page configure it (`apps.servers`).
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from itertools import islice
from typing import Any

import httpx

from apps.agents.events import ModelEvent
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Model, ModelRequest
from apps.agents.providers.listing import ListingProvider
from apps.agents.providers.openai_server import checked, client, key_problem, unavailable
from apps.agents.providers.openai_stream import stream
from apps.core.http import replies
from apps.core.http.limits import MAX_MODELS, MAX_NAME, is_name
from apps.core.http.replies import ReplyRefused
from apps.core.values.addresses import AddressRefused
from apps.servers.kinds import OPENAI
from apps.servers.services import current_async
from apps.servers.types import Server

LIST_SECONDS = 2.5

# Servers list all their models and rarely give a type; most names of other models match this.
NON_CHAT_NAMES = re.compile(
    r"embed|rerank|moderation|whisper|transcribe|dall-e|(^|[/_-])(bge|gte|e5|minilm|tts|sora)([-_.]|$)",
    re.IGNORECASE,
)
NON_CHAT_TYPES = frozenset({"embedding", "embeddings", "vector", "rerank", "reranker"})


class OpenAIProvider(ListingProvider):
    """Streams Chat Completions with tools."""

    id = "openai"
    label = "OpenAI-compatible server"
    system_prompt = SYSTEM_PROMPT
    kind = OPENAI

    def __init__(self) -> None:
        super().__init__(list_chat_models)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        server = checked(await current_async(self.kind))
        async with aclosing(stream(server, request)) as events:
            async for event in events:
                yield event


async def list_chat_models(server: Server) -> tuple[Model, ...]:
    """List the chat models of a server within LIST_SECONDS. Raises Unavailable that says what is
    missing."""
    extensions = {replies.MAX_BYTES: replies.MAX_LIST}
    try:
        async with asyncio.timeout(LIST_SECONDS), client(checked(server), timeout=None) as http:
            response = await http.get("/models", extensions=extensions)
        answer = response.json() if response.is_success else None
    except (TimeoutError, httpx.TimeoutException):
        raise unavailable(f"{server.origin} does not answer in time.", retryable=True) from None
    except (httpx.HTTPError, OSError):
        raise unavailable(f"Nothing answers at {server.origin}.", retryable=True) from None
    except ReplyRefused as error:
        raise unavailable(f"{server.origin} {error}.", retryable=True) from None
    except AddressRefused as error:
        raise unavailable(f"The address {server.origin} {error}.") from None
    except (ValueError, RecursionError):
        raise unavailable(f"{server.origin} does not answer like an OpenAI server.") from None
    if not response.is_success:
        raise unavailable(_refusal(response.status_code, server), retryable=True)
    chatting = (entry for entry in _entries(answer) if _is_chat_model(entry))
    models = tuple(Model(entry["id"], entry["id"]) for entry in islice(chatting, MAX_MODELS))
    if not models:
        raise unavailable(f"{server.origin} offers no chat model.", retryable=True)
    return models


def _refusal(status: int, server: Server) -> str:
    match status:
        case 401 | 403:
            return f"{server.origin} {key_problem(server)}"
        case 404:
            return f"{server.origin} has no list of models there: does the address end in /v1?"
        case _:
            return f"{server.origin} answered {status} when asked for its models."


def _entries(answer: Any) -> list[Mapping[str, Any]]:
    """Return the entries of `{"data": [...]}`, or of a bare list, which some servers send."""
    data = answer.get("data") if isinstance(answer, dict) else answer
    entries = data if isinstance(data, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and is_name(entry.get("id"))]


def _is_chat_model(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("type"))[:MAX_NAME] not in NON_CHAT_TYPES and not NON_CHAT_NAMES.search(
        entry["id"]
    )
