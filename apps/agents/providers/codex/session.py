"""The entry points that need the SDK. `provider` imports this module on first use."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

from openai_codex.client import CodexClient
from openai_codex.errors import CodexError

from apps.agents.providers.base import Model, ModelRequest
from apps.agents.providers.codex import work_folder
from apps.agents.providers.codex.account import Accounts
from apps.agents.providers.codex.failures import not_started
from apps.agents.providers.codex.home import main_home
from apps.agents.providers.codex.options import turn_parameters
from apps.agents.providers.codex.server import AppServer, effective_config, server_at
from apps.agents.providers.codex.turn import CodexTurn
from apps.core.http.limits import MAX_MODELS, is_name, label

# Models for a Codex that does not list any.
FALLBACK = tuple(
    Model(key, key, "codex", efforts=("low", "medium", "high", "xhigh"))
    for key in ("gpt-5.1-codex-max", "gpt-5.1-codex-mini", "gpt-5.1", "gpt-5.2")
)
# Codex' own name for the provider whose models it lists.
LISTED_PROVIDER = "openai"


def accounts() -> Accounts:
    """Return the accounts of the chat's home."""
    return _accounts(server_at(main_home()))


@cache
def _accounts(server: AppServer) -> Accounts:
    return Accounts(server)


def turn(request: ModelRequest) -> CodexTurn:
    """Create the turn for a request. The caller begins it. Raises Unavailable."""
    home = request.home.absolute() if request.home else main_home()
    try:
        folder = request.folder or work_folder.create()
    except OSError as error:
        raise not_started(error) from error
    parameters = turn_parameters(request, folder)
    temporary = folder if request.folder is None else None
    return CodexTurn(server_at(home), parameters, temporary)


def models() -> tuple[Model, ...]:
    """List the models of the chat's home, the one of its settings first. Blocks."""
    try:
        return server_at(main_home()).call(_models)
    except CodexError:
        return FALLBACK


def _models(client: CodexClient) -> tuple[Model, ...]:
    settings = effective_config(client)
    if settings.model_provider not in (None, LISTED_PROVIDER):
        # Codex lists OpenAI's models even if another provider is configured.
        key = settings.model
        return (Model(key, key, "codex", FALLBACK[0].efforts),) if key else FALLBACK
    listed = tuple(_listed(client)) or FALLBACK
    return tuple(sorted(listed, key=lambda model: model.key != settings.model))


def _listed(client: CodexClient) -> Iterator[Model]:
    valid_entries = (entry for entry in client.model_list().data if is_name(entry.model))
    for entry in islice(valid_entries, MAX_MODELS):
        efforts = tuple(one.reasoning_effort.value for one in entry.supported_reasoning_efforts)
        yield Model(entry.model, label(entry.display_name), "codex", efforts)
