"""The pages that the sidebar and the command palette lead to, in their order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of the menu.

    icon: of templates/_icons.html.
    key: the letter that opens it after `g`.
    has_api: its address serves JSON, too, to clients that do not accept HTML.
    """

    path: str
    title: str
    icon: str
    key: str
    for_staff: bool = False
    has_api: bool = False


PAGES = (
    Page("/", "Home", "home", "h"),
    Page("/chat", "Chat", "chat", "c", has_api=True),
    Page("/agents", "Agents", "agents", "a", has_api=True),
    Page("/search", "Search", "search", "s"),
    Page("/code", "Code", "code", "b"),
    Page("/ingest", "Ingest", "ingest", "i"),
    Page("/lmstudio", "LM Studio", "server", "o"),
    Page("/providers", "Providers", "bulb", "p", for_staff=True),
    Page("/logs", "Logs", "logs", "l", for_staff=True, has_api=True),
    Page("/connect", "Connect", "connect", "m"),
)
