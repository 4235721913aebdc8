"""Time stamps of the API."""

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`, in UTC. `moment` must be timezone-aware."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """A time in ISO 8601, of any zone, as seconds since the epoch; 0 for another text."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
