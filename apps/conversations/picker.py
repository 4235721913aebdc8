"""Which providers and models a page offers, those that cannot be used now with their reason."""

import asyncio
from dataclasses import dataclass

from apps.agents.providers import registry
from apps.agents.providers.base import Model, Provider
from codeinfo.errors import Unavailable

# A server that is slow to say whether it is there does not hold up the page: it is asked again by
# the page itself.
PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class Offer:
    """One provider in the list."""

    id: str
    label: str
    available: bool
    reason: str


@dataclass(frozen=True)
class Picker:
    """The offers, the models of the chosen one, and what is chosen. `fixed`: the provider stays."""

    offers: list[Offer]
    models: list[Model]
    provider: str
    model: str
    fixed: bool
    loading: bool = False

    @property
    def chosen(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.id == self.provider), None)

    @property
    def reason(self) -> str:
        """Why nothing can be sent now; empty when it can."""
        if self.chosen is not None and not self.chosen.available:
            return self.chosen.reason
        if not self.models and not self.loading:
            return "No chat-capable models available for this provider."
        return ""

    @property
    def others_away(self) -> list[Offer]:
        """Offers that are listed but cannot be chosen."""
        return [o for o in self.offers if not o.available and o.id != self.provider]


async def picker(provider: str, model: str, *, fixed: bool, patient: bool) -> Picker:
    """What to offer; without patience a page that would have to wait gets a `loading` one."""
    try:
        async with asyncio.timeout(None if patient else PATIENCE_SECONDS):
            return await _picker(provider, model, fixed)
    except TimeoutError:
        return Picker([], [], provider, model, fixed, loading=True)


async def _picker(provider: str, model: str, fixed: bool) -> Picker:
    known = registry.providers()
    offers = await asyncio.gather(*(_offer(one) for one in known.values()))
    chosen = provider if provider in known else await registry.preselected()
    models = await _models(known[chosen])
    if model not in [one.key for one in models]:
        model = models[0].key if models else ""
    return Picker(list(offers), models, chosen, model, fixed)


async def _offer(provider: Provider) -> Offer:
    state = await provider.availability()
    return Offer(provider.id, provider.label, state.available, state.reason or "")


async def _models(provider: Provider) -> list[Model]:
    try:
        return list(await provider.models())
    except Unavailable:
        return []
