"""Which providers there are. Adding one is a line in `_all`."""

from functools import cache

from apps.agents.providers.base import Provider
from apps.agents.providers.builtin import BuiltinProvider
from apps.agents.providers.codex.provider import CodexProvider
from apps.agents.providers.lmstudio import LMStudioProvider
from apps.agents.providers.openai import OpenAIProvider
from apps.core.config import config
from apps.core.errors import InvalidInput


@cache
def _all() -> tuple[Provider, ...]:
    """In the order in which pages prefer them (docs/decisions.md C6)."""
    return (OpenAIProvider(), LMStudioProvider(), CodexProvider(), BuiltinProvider())


def providers() -> dict[str, Provider]:
    """All providers by id, whether they can be used now or not."""
    return {provider.id: provider for provider in _all()}


def get_provider(id: str) -> Provider:
    """Raises InvalidInput (UNSUPPORTED_PROVIDER) for an unknown id."""
    known = providers()
    if id not in known:
        names = ", ".join(f'"{name}"' for name in known)
        raise InvalidInput(f"provider must be one of: {names}", code="UNSUPPORTED_PROVIDER")
    return known[id]


async def preselected() -> str:
    """The provider that pages begin with: the configured one, else the first that is available."""
    known = providers()
    if config().chat_provider in known:
        return config().chat_provider
    for id, provider in known.items():
        if (await provider.availability()).available:
            return id
    return "builtin"
