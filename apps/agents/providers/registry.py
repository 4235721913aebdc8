"""The registry of providers. To add one, add it to `_all`."""

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
    """All providers, in the order of preference (docs/decisions.md C6)."""
    return (OpenAIProvider(), LMStudioProvider(), CodexProvider(), BuiltinProvider())


def providers() -> dict[str, Provider]:
    """Return all providers by id, available or not."""
    return {provider.id: provider for provider in _all()}


def get_provider(id: str) -> Provider:
    """Return a provider. Raises InvalidInput (UNSUPPORTED_PROVIDER) for an unknown id."""
    all_providers = providers()
    if id not in all_providers:
        names = ", ".join(f'"{name}"' for name in all_providers)
        raise InvalidInput(f"provider must be one of: {names}", code="UNSUPPORTED_PROVIDER")
    return all_providers[id]


async def preselected() -> str:
    """Return the id of the configured provider, else of the first available one."""
    all_providers = providers()
    if config().chat_provider in all_providers:
        return config().chat_provider
    for id, provider in all_providers.items():
        if (await provider.availability()).available:
            return id
    return "builtin"
