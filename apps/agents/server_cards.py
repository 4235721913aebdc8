"""The servers of the Providers page: what is saved, and what the environment sets."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from apps.agents.providers import lmstudio, openai
from apps.agents.providers.base import Model
from apps.core.errors import InvalidInput
from apps.servers import services
from apps.servers.kinds import LMSTUDIO, OPENAI, Kind
from apps.servers.types import Server

# Names of models that a card lists.
SHOWN_MODELS = 12


@dataclass(frozen=True)
class ServerCard:
    """One server, as the page shows it. It never has the key.

    address: the text of its field.
    page: the page where it is configured; "" for a form in the card.
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
    page: str
    address: str
    key_state: services.KeyState
    address_variable: str = ""
    key_variable: str = ""
    is_saved: bool = False
    models: tuple[str, ...] | None = None
    error: str = ""
    error_field: str = ""
    done: str = ""

    @property
    def shown_models(self) -> tuple[str, ...]:
        return (self.models or ())[:SHOWN_MODELS]

    @property
    def is_fixed(self) -> bool:
        """Whether the environment sets address and key, so that nothing can be saved."""
        return bool(self.address_variable and self.key_variable)

    @property
    def is_chosen(self) -> bool:
        """Whether somebody chose the address, so that its silence is an error."""
        return self.is_saved or bool(self.address_variable)

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


@dataclass(frozen=True)
class CardKind:
    """A kind of server that the page shows, and its texts.

    page: the page that configures it; "" for this one.
    list: list the models of a server. Raises Unavailable.
    """

    kind: Kind
    label: str
    about: str
    page: str
    list: Callable[[Server], Awaitable[Sequence[Model]]]

    def card(self) -> ServerCard:
        """The card of the server in force, not asked yet."""
        kind, server, environment = self.kind, services.current(self.kind), self.kind.environment()
        return ServerCard(
            id=kind.id,
            label=self.label,
            about=self.about,
            page=self.page,
            address=server.bare_url,
            key_state=services.key_state(kind, server),
            address_variable=kind.address_variable if environment.is_address_set else "",
            key_variable=kind.key_variable if environment.is_key_set else "",
            is_saved=services.is_saved(kind),
        )


CARDS = {
    "openai": CardKind(
        kind=OPENAI,
        label=openai.OpenAIProvider.label,
        about="Ollama, llama.cpp, vLLM or a hosted service with OpenAI's Chat Completions API.",
        page="",
        list=openai.list_chat_models,
    ),
    "lmstudio": CardKind(
        kind=LMSTUDIO,
        label=lmstudio.LMStudioProvider.label,
        about="Models on your own machine. Start its server there, in the Developer tab.",
        page="/lmstudio",
        list=lmstudio.list_chat_models,
    ),
}
