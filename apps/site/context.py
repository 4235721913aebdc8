"""What every page's shell shows."""

from typing import Any

from django.http import HttpRequest

from apps.conversations import sidebar
from apps.core.config import config


def shell(request: HttpRequest) -> dict[str, Any]:
    """The theme from its cookie, so that the first paint is right, and the newest conversations."""
    theme = request.COOKIES.get("theme", "")
    known = config()
    return {
        "theme": theme if theme in ("light", "dark") else "",
        # What the browser may send to the log at once, in bytes; 0: nothing.
        "log_forward": min(known.client_log_bytes, known.log_max_client_bytes)
        if known.client_log
        else 0,
        # Asked only by the templates that draw it.
        "recent": sidebar.recent,
    }
