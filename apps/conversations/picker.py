"""Which providers and models a page offers, those that cannot be used now with their reason."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.agents.providers import registry
from apps.agents.providers.base import Model, Provider
from apps.conversations import flags as codex_flags
from apps.core.errors import Unavailable

# A server that is slow to say whether it is there does not hold up the page: it is asked again by
# the page itself.
PATIENCE_SECONDS = 1.0

CODEX = "codex"
# Codex looks things up by itself, so without the tools it could only guess.
NEEDS_TOOLS = "Codex requires MCP tools, and they cannot be used now."


@dataclass(frozen=True)
class Offer:
    """One provider in the list. `tools`: whether it can use the search tools, too."""

    id: str
    label: str
    available: bool
    reason: str
    tools: bool = True


@dataclass(frozen=True)
class Picker:
    """The offers, the models of the chosen one, and what is chosen. `fixed`: the provider stays.

    `flags` is the panel of Codex' flags, empty for other providers.
    """

    offers: list[Offer]
    models: list[Model]
    provider: str
    model: str
    fixed: bool
    loading: bool = False
    flags: list[codex_flags.Row] = field(default_factory=list)

    @property
    def flags_summary(self) -> str:
        return codex_flags.summary(self.flags)

    @property
    def chosen(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.id == self.provider), None)

    @property
    def reason(self) -> str:
        """Why nothing can be sent now; empty when it can."""
        if self.chosen is not None and not self.chosen.available:
            return self.chosen.reason
        if self.chosen is not None and self.provider == CODEX and not self.chosen.tools:
            return f"{NEEDS_TOOLS} {self.chosen.reason}"
        if not self.models and not self.loading:
            return "No chat-capable models available for this provider."
        return ""

    @property
    def others_away(self) -> list[Offer]:
        """Offers that are listed but cannot be chosen."""
        return [o for o in self.offers if not o.available and o.id != self.provider]


async def picker(
    provider: str,
    model: str,
    *,
    fixed: bool,
    patient: bool,
    chosen: Mapping[str, Any] | None = None,
) -> Picker:
    """What to offer; without patience a page that would have to wait gets a `loading` one.

    `chosen` are Codex' flags so far: those of the conversation or of the form, else the defaults.
    """
    try:
        async with asyncio.timeout(None if patient else PATIENCE_SECONDS):
            return await _picker(provider, model, fixed, chosen or {})
    except TimeoutError:
        return Picker([], [], provider, model, fixed, loading=True)


async def refuse_without_tools(provider: str) -> None:
    """Raises Unavailable PROVIDER_UNAVAILABLE where Codex is asked and has no tools."""
    if provider != CODEX:
        return
    offer = await _offer(registry.get_provider(CODEX))
    if offer.available and not offer.tools:
        raise Unavailable(f"{NEEDS_TOOLS} {offer.reason}", code="PROVIDER_UNAVAILABLE")


async def _picker(provider: str, model: str, fixed: bool, given: Mapping[str, Any]) -> Picker:
    known = registry.providers()
    offers = await asyncio.gather(*(_offer(one) for one in known.values()))
    chosen = provider if provider in known else await registry.preselected()
    models = await _models(known[chosen])
    if model not in [one.key for one in models]:
        model = models[0].key if models else ""
    efforts = next((one.efforts for one in models if one.key == model), ())
    panel = codex_flags.rows(given, efforts) if chosen == CODEX else []
    return Picker(list(offers), models, chosen, model, fixed, flags=panel)


async def _offer(provider: Provider) -> Offer:
    state = await provider.availability()
    reason = state.reason or ""
    return Offer(provider.id, provider.label, state.available, reason, state.tools_available)


async def _models(provider: Provider) -> list[Model]:
    try:
        return list(await provider.models())
    except Unavailable:
        return []
