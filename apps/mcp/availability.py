"""Whether the provider of `/mcp/chat` is available, and what to do if it is not."""

import asyncio
from collections.abc import Mapping
from typing import Any

from apps.agents.providers import registry
from apps.core.config import config
from apps.core.errors import Unavailable

CODE = "CODE_INFO_LLM_UNAVAILABLE"


async def gate(arguments: Mapping[str, Any]) -> None:
    """Called before tools/list and tools/call. Raises Unavailable if CODEINFO_MCP_PROVIDER is set
    and cannot answer, unless the call names another provider."""
    provider_id = config().mcp_provider
    if provider_id and (arguments.get("provider") or provider_id) == provider_id:
        reason = await unavailable_reason(provider_id)
        if reason is not None:
            raise await unavailable(provider_id, reason)


async def default_provider() -> str:
    """CODEINFO_MCP_PROVIDER, else the first provider that is available; `builtin` always is."""
    if provider_id := config().mcp_provider:
        return provider_id
    for id in registry.providers():
        if await unavailable_reason(id) is None:
            return id
    return "builtin"


async def unavailable(provider_id: str, reason: str) -> Unavailable:
    """The error CODE_INFO_LLM_UNAVAILABLE, whose details are `reason` and `hint`."""
    hint = await _hint(provider_id)
    return Unavailable(
        f"No model can answer here now. {reason}",
        code=CODE,
        details={"reason": reason, "hint": hint},
    )


async def unavailable_reason(provider_id: str) -> str | None:
    """Why a provider cannot be used now; None if it is available."""
    provider = registry.providers().get(provider_id)
    if provider is None:
        return f"This version does not have the provider {provider_id!r} yet."
    if provider_id == "codex" and config().mcp_force_codex == "true":
        return None
    state = await provider.availability()
    # Without its tools a model could only guess.
    if state.available and state.tools_available:
        return None
    return state.reason or f"{provider.label} is not available."


async def _hint(provider_id: str) -> str:
    others = [id for id in registry.providers() if id != provider_id]
    reasons = await asyncio.gather(*map(unavailable_reason, others))
    ready = [id for id, reason in zip(others, reasons, strict=True) if reason is None]
    return (
        "Whoever runs the server can set CODEINFO_MCP_PROVIDER to a provider that is available "
        f"({', '.join(ready) or 'none is now'}) and start it again. Meanwhile the tools at /mcp "
        "search the code without a language model."
    )
