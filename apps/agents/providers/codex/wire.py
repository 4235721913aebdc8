"""What a turn tells while it goes on, before it is translated."""

from dataclasses import dataclass

from apps.core.types import JSON


@dataclass(frozen=True)
class Opened:
    """The thread that answers; `anew`: the one asked for was not there any more."""

    thread_id: str
    anew: bool = False


@dataclass(frozen=True)
class Told:
    """One notification, by its name on the wire."""

    method: str
    payload: JSON
