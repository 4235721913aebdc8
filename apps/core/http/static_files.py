"""Serves static files in front of Django.

WhiteNoise's middleware is synchronous, and with one synchronous middleware every request occupies a
thread as long as its view runs; streams run for minutes. So WhiteNoise only finds the files and
builds the responses (ranges, caching, types); this module sends them by ASGI.
"""

from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from whitenoise import WhiteNoise

from apps.core.http.ports import Application


def _safe(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"


def _indexed() -> WhiteNoise:
    files = WhiteNoise(None, add_headers_function=_safe)
    folders = {storage.location for finder in get_finders() for _, storage in finder.list([])}
    for folder in sorted(folders):
        files.add_files(folder, prefix=settings.STATIC_URL)
    return files


class WithStaticFiles:
    """Serves the static folders of the project and its apps. Passes on all other requests."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self.files = _indexed().files

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        file = self.files.get(scope["path"])
        if file is None:
            await self.app(scope, receive, send)
            return
        names = ((f"HTTP_{k.decode().upper().replace('-', '_')}", v) for k, v in scope["headers"])
        response = file.get_response(
            scope["method"], {name: v.decode("latin-1") for name, v in names}
        )
        headers = [(key.lower().encode(), value.encode()) for key, value in response.headers]
        start = {"type": "http.response.start", "status": response.status, "headers": headers}
        body = b""
        if response.file is not None:
            with response.file:
                body = response.file.read()
        await send(start)
        await send({"type": "http.response.body", "body": body})
