"""The context processor of all pages."""

from typing import Any

from django.http import HttpRequest

from apps.conversations import sidebar
from apps.core.config import config


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return the theme of the cookie, limits of the client log, and the latest conversations."""
    theme = request.COOKIES.get("theme", "")
    settings = config()
    return {
        "theme": theme if theme in ("light", "dark") else "",
        # Largest log entry that the browser may send, in bytes; 0 for none.
        "log_forward": min(settings.client_log_bytes, settings.log_max_client_bytes)
        if settings.client_log
        else 0,
        # A callable: only some templates need it.
        "recent": sidebar.recent,
    }
