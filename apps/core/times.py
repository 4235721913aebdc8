"""Moments as the wire spells them."""

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`, in UTC; `moment` must know its zone."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
