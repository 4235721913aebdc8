"""The servers of the Providers page: what is saved, what the environment sets, and tests."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from apps.agents.providers import lmstudio, openai, openai_server
from apps.agents.providers.base import Model
from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.lmstudio import services

logger = logging.getLogger("codeinfo.agents")

KeyState = Literal["none", "saved", "unreadable", "environment"]
# Names of models that a card lists.
SHOWN_MODELS = 12


@dataclass(frozen=True)
class ServerCard:
    """One server, as the page shows it. It never has the key.

    address: the text of its field.
    hint: on the address.
    address_variable, key_variable: what the environment sets, so that it cannot be changed; "" if
        it does not.
    key_state: whether there is a key.
    is_saved: an address is saved, which can be removed.
    models: names; None until the server was asked.
    error: a sentence; `error_field` is "address", "key" or "".
    done: what the last button did.
    """

    id: str
    label: str
    about: str
    key_label: str
    hint: str
    address: str
    key_state: KeyState
    address_variable: str = ""
    key_variable: str = ""
    is_saved: bool = False
    models: tuple[str, ...] | None = None
    error: str = ""
    error_field: str = ""
    done: str = ""
    shown_models: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown_models", (self.models or ())[:SHOWN_MODELS])

    @property
    def is_fixed(self) -> bool:
        """Whether the environment sets address and key, so that nothing can be saved."""
        return bool(self.address_variable and self.key_variable)

    @property
    def is_unasked(self) -> bool:
        """Whether there is a server that was not asked yet."""
        return bool(self.address) and self.models is None and not (self.error or self.done)

    @property
    def more_models(self) -> int:
        return len(self.models or ()) - len(self.shown_models)

    def failed(self, address: str, error: InvalidInput) -> "ServerCard":
        """The card with a refused form, whose address is kept and whose key is not."""
        about_key = error.code == "INVALID_KEY"
        where = "key" if about_key else "address" if error.code == "INVALID_BASE_URL" else ""
        return replace(self, address=address, error=error.message, error_field=where)


class Server(Protocol):
    """A kind of server that the page configures. Its methods are called in a thread, except `list`,
    which raises Unavailable."""

    def card(self) -> ServerCard: ...

    def save(self, address: str, key: str) -> None:
        """Raises InvalidInput."""

    def forget(self) -> None: ...

    async def list(self, typed: tuple[str, str] | None) -> Sequence[Model]:
        """List the models of the current server, or of a form's address and key, which are not
        saved. Raises InvalidInput, too."""


class OpenAIServers:
    """OpenAI-compatible servers."""

    def card(self) -> ServerCard:
        by_environment = bool(config().openai_base_url)
        saved = openai_server.saved_state()
        key_state: KeyState = "saved" if saved.has_key else "none"
        if saved.is_unreadable:
            key_state = "unreadable"
        if by_environment:
            key_state = "environment" if config().openai_api_key else "none"
        address = openai_server.environment_address() if by_environment else saved.base_url
        return ServerCard(
            id="openai",
            label=openai.OpenAIProvider.label,
            about="Ollama, llama.cpp, vLLM or a hosted service with OpenAI's Chat Completions API.",
            key_label="API key",
            hint="With its /v1, for example http://127.0.0.1:11434/v1",
            address=address,
            key_state=key_state,
            address_variable=openai_server.ADDRESS_VARIABLE if by_environment else "",
            key_variable=openai_server.KEY_VARIABLE if by_environment else "",
            is_saved=bool(saved.base_url),
        )

    def save(self, address: str, key: str) -> None:
        openai_server.save(openai_server.typed_server(address, key))
        logger.info("provider saved", extra={"context": {"provider": "openai"}})

    def forget(self) -> None:
        openai_server.forget()
        logger.info("provider removed", extra={"context": {"provider": "openai"}})

    async def list(self, typed: tuple[str, str] | None) -> Sequence[Model]:
        if typed is None or config().openai_base_url:
            return await openai.list_chat_models(await openai_server.current_server())
        server = await openai_server.typed_in_thread(*typed)
        return await openai.list_chat_models(server)


class LMStudioServers:
    """LM Studio."""

    def card(self) -> ServerCard:
        server = services.server()
        fixed_key = bool(config().lmstudio_api_token)
        key_state: KeyState = "saved" if server.token else "none"
        if server.unreadable:
            key_state = "unreadable"
        if fixed_key:
            key_state = "environment"
        return ServerCard(
            id="lmstudio",
            label=lmstudio.LMStudioProvider.label,
            about="Models on your own machine. Start its server there, in the Developer tab.",
            key_label="API token",
            hint=f"Default: {services.default()}",
            address=str(server.address),
            key_state=key_state,
            address_variable=services.ADDRESS_VARIABLE if services.is_address_set() else "",
            key_variable=services.TOKEN_VARIABLE if fixed_key else "",
            is_saved=services.is_saved(),
        )

    def save(self, address: str, key: str) -> None:
        services.save(services.parse(address), services.parse_token(key))

    def forget(self) -> None:
        services.reset()

    async def list(self, typed: tuple[str, str] | None) -> Sequence[Model]:
        if typed is None:
            return await lmstudio.list_chat_models(await lmstudio.current_server())
        return await lmstudio.list_chat_models(await lmstudio.typed_in_thread(*typed))


SERVERS: dict[str, Server] = {"openai": OpenAIServers(), "lmstudio": LMStudioServers()}
