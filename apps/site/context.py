"""What every page's shell shows."""

from typing import Any

from django.http import HttpRequest

from apps.conversations import sidebar


def shell(request: HttpRequest) -> dict[str, Any]:
    """The theme from its cookie, so that the first paint is right, and the newest conversations."""
    theme = request.COOKIES.get("theme", "")
    return {
        "theme": theme if theme in ("light", "dark") else "",
        # Asked only by the templates that draw it.
        "recent": sidebar.recent,
    }
