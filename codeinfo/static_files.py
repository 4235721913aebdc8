"""Static files, answered before Django is asked.

WhiteNoise's middleware is synchronous, and one synchronous middleware makes every request hold a
thread for as long as its view runs; streams run for minutes. So it stands beside Django instead.
"""

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.headers import Headers

from asgiref.wsgi import WsgiToAsgi
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from whitenoise import WhiteNoise

from codeinfo.ports import Application


def _not_found(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("404 Not Found", [("Content-Type", "text/plain")])
    return [b"Not found"]


def _safe(headers: "Headers", path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"


def static_application() -> Application:
    """Serves the static folders of the project and its apps below STATIC_URL."""
    files = WhiteNoise(_not_found, add_headers_function=_safe, autorefresh=settings.DEBUG)
    folders = {storage.location for finder in get_finders() for _, storage in finder.list([])}
    for folder in sorted(folders):
        files.add_files(folder, prefix=settings.STATIC_URL)
    return WsgiToAsgi(files)  # type: ignore[no-any-return]


class WithStaticFiles:
    """Passes requests below STATIC_URL to the static files, everything else on."""

    def __init__(self, app: Application, static: Application) -> None:
        self.app = app
        self.static = static

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        is_static = scope["path"].startswith(settings.STATIC_URL)
        await (self.static if is_static else self.app)(scope, receive, send)
