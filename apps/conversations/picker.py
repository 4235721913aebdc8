"""The providers and models that a page offers, and why some are unavailable."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.text import get_text_list

from apps.agents.providers import registry
from apps.agents.providers.base import Model, Provider
from apps.conversations import flags as codex_flags
from apps.core.errors import Unavailable

# A slow server does not delay the page: the page requests the picker again.
TIMEOUT_SECONDS = 1.0

CODEX = "codex"
# Without the tools of the index, Codex could only guess.
NEEDS_TOOLS = "Codex requires MCP tools, and they cannot be used now."


@dataclass(frozen=True)
class Offer:
    """A provider in the list.

    reason: why it is unavailable, or its tools are; "" if neither.
    tools: True if it can use the search tools.
    """

    id: str
    label: str
    available: bool
    reason: str
    tools: bool = True


@dataclass(frozen=True)
class Picker:
    """The choice of a provider and a model.

    offers: all providers.
    models: of the chosen provider.
    provider, model: the chosen ids.
    fixed: the provider cannot be changed, since the conversation exists.
    loading: the providers did not answer in time.
    flags: fields of the Codex flags; empty for other providers.
    """

    offers: list[Offer]
    models: list[Model]
    provider: str
    model: str
    fixed: bool
    loading: bool = False
    flags: list[codex_flags.FlagField] = field(default_factory=list)

    def with_model(self, model: str) -> "Picker":
        """Choose a model that the provider need not list."""
        if not model or self.loading or model in [one.key for one in self.models]:
            return self
        return replace(self, models=[Model(model, model), *self.models], model=model)

    @property
    def flags_summary(self) -> str:
        return codex_flags.summary(self.flags)

    @property
    def chosen(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.id == self.provider), None)

    @property
    def reason(self) -> str:
        """Why no message can be sent now; "" if one can."""
        if self.chosen is not None and not self.chosen.available:
            return self.chosen.reason
        if self.chosen is not None and self.provider == CODEX and not self.chosen.tools:
            return f"{NEEDS_TOOLS} {self.chosen.reason}"
        if not self.models and not self.loading:
            return "No chat-capable models available for this provider."
        return ""

    @property
    def not_connected(self) -> str:
        """The names of the unavailable providers, except the chosen one: "A and B"."""
        away = [o.label for o in self.offers if not o.available and o.id != self.provider]
        return get_text_list(away, "and")


async def picker(
    provider: str,
    model: str,
    *,
    fixed: bool,
    wait: bool,
    chosen: Mapping[str, Any] | None = None,
) -> Picker:
    """Build the picker; a `loading` one after TIMEOUT_SECONDS unless `wait`.

    chosen: Codex flags of the conversation or the form; others have their defaults.
    """
    try:
        async with asyncio.timeout(None if wait else TIMEOUT_SECONDS):
            return await _picker(provider, model, fixed, chosen or {})
    except TimeoutError:
        return Picker([], [], provider, model, fixed, loading=True)


async def refuse_without_tools(provider: str) -> None:
    """Raise Unavailable PROVIDER_UNAVAILABLE if the provider is Codex and it has no tools."""
    if provider != CODEX:
        return
    offer = await _offer(registry.get_provider(CODEX))
    if offer.available and not offer.tools:
        raise Unavailable(f"{NEEDS_TOOLS} {offer.reason}", code="PROVIDER_UNAVAILABLE")


async def _picker(provider: str, model: str, fixed: bool, flags: Mapping[str, Any]) -> Picker:
    known = registry.providers()
    offers = await asyncio.gather(*(_offer(one) for one in known.values()))
    chosen = provider if provider in known else await registry.preselected()
    models = await _models(known[chosen])
    if model not in [one.key for one in models]:
        model = models[0].key if models else ""
    efforts = next((one.efforts for one in models if one.key == model), ())
    panel = codex_flags.fields(flags, efforts) if chosen == CODEX else []
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
