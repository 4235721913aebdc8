"""Time stamps of the API."""

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`, in UTC. `moment` must be timezone-aware."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
