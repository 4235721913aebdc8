"""The items that a running turn yields, before translation."""

from dataclasses import dataclass

from apps.core.types import JSON

# The name of our endpoint among Codex's MCP servers.
OWN_SERVER = "codeinfo"


@dataclass(frozen=True)
class ThreadOpened:
    """The thread is open.

    resumed: it has the earlier messages.
    replaced: the requested thread no longer exists; this one is new.
    """

    thread_id: str
    resumed: bool = False
    replaced: bool = False


@dataclass(frozen=True)
class TurnNotification:
    """One notification of the app server.

    method: the JSON-RPC method, such as "item/completed".
    payload: its parameters, with the names of the wire.
    """

    method: str
    payload: JSON
