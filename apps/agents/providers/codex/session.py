"""What the provider needs of the SDK, imported when it is first used."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

from openai_codex.client import CodexClient
from openai_codex.errors import CodexError

from apps.agents.providers.base import Model, ModelRequest
from apps.agents.providers.codex.account import Accounts
from apps.agents.providers.codex.home import main_home
from apps.agents.providers.codex.options import plan_of
from apps.agents.providers.codex.server import AppServer, server_at, settings_of
from apps.agents.providers.codex.turn import Turn
from apps.core.limits import MAX_MODELS, is_name, label

# What the sources of this product offered, for a Codex that does not tell its models.
FALLBACK = tuple(
    Model(key, key, "codex", efforts=("low", "medium", "high", "xhigh"))
    for key in ("gpt-5.1-codex-max", "gpt-5.1-codex-mini", "gpt-5.1", "gpt-5.2")
)
# Codex' own name for the provider whose models it lists.
LISTED_PROVIDER = "openai"


def accounts() -> Accounts:
    """Those of the chat's home."""
    return _accounts(server_at(main_home()))


@cache
def _accounts(server: AppServer) -> Accounts:
    return Accounts(server)


def turn(request: ModelRequest) -> Turn:
    """The turn that answers a request, not begun yet."""
    home = request.home.absolute() if request.home else main_home()
    return Turn(server_at(home), plan_of(request))


def models() -> tuple[Model, ...]:
    """The models of the chat's home, that of its settings first. Blocks."""
    try:
        return server_at(main_home()).ask(_models)
    except CodexError:
        return FALLBACK


def _models(client: CodexClient) -> tuple[Model, ...]:
    settings = settings_of(client)
    if settings.model_provider not in (None, LISTED_PROVIDER):
        # Codex lists the models of OpenAI whoever serves them.
        own = [settings.model] if settings.model else []
        return tuple(Model(key, key, "codex", FALLBACK[0].efforts) for key in own) or FALLBACK
    listed = tuple(_listed(client)) or FALLBACK
    return tuple(sorted(listed, key=lambda model: model.key != settings.model))


def _listed(client: CodexClient) -> Iterator[Model]:
    known = (entry for entry in client.model_list().data if is_name(entry.model))
    for entry in islice(known, MAX_MODELS):
        efforts = tuple(one.reasoning_effort.value for one in entry.supported_reasoning_efforts)
        yield Model(entry.model, label(entry.display_name), "codex", efforts)
