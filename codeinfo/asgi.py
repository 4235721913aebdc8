"""The ASGI application: HTTP is served by Django, websockets by consumers.

PORT serves everything. MCP_PORT and AGENTS_MCP_PORT serve one MCP endpoint each, at any path.
"""

import asyncio
import os
import re
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")

import django
from django.core.handlers.asgi import ASGIHandler


class Handler(ASGIHandler):
    """Django's handler, without errors about clients that disconnect while the process ends."""

    async def listen_for_disconnect(self, receive: Any) -> None:
        # When the process ends, the handler is cancelled and no longer waits for this task. Without
        # the callback, asyncio would print that its exception was never retrieved.
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(_retrieve)
        await super().listen_for_disconnect(receive)


def _retrieve(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()


django.setup(set_prefix=False)
django_application = Handler()

# Consumers import models, which need django.setup() first.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

from apps.conversations.urls import websocket_urlpatterns as conversation_sockets
from apps.core.config import config
from apps.core.http.bodies import at_most
from apps.core.http.ports import PortRouter, nothing_here, only_path
from apps.core.http.proxies import TrustedProxies
from apps.core.http.static_files import WithStaticFiles
from apps.core.http.threads import ReusedThreads
from apps.core.principal import ANONYMOUS, acting_as
from apps.core.security.access import HOOKS, MAX_HOOK, MCP, WebsocketGate
from apps.ingest.urls import websocket_urlpatterns as ingest_sockets
from apps.logs.middleware import SocketLog


async def escaped(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Django, with bytes of the query string escaped that may not be UTF-8. Without that, Django
    responds with an unstyled page."""
    # Before the middleware has set the principal, and after it, while a stream continues.
    with acting_as(ANONYMOUS):
        await _answer(scope, receive, send)


async def _answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    query = re.sub(rb"[\x80-\xff]", lambda byte: b"%%%02X" % ord(byte[0]), scope["query_string"])
    # A client that is redirected may lose the body of its POST.
    path = scope["path"].removesuffix("/")
    path = path if path in MCP else scope["path"]
    if path.startswith(HOOKS):
        receive = at_most(receive, MAX_HOOK)
    await django_application({**scope, "path": path, "query_string": query}, receive, send)


http = ReusedThreads(escaped)

everything = ProtocolTypeRouter(
    {
        "http": WithStaticFiles(http),
        "websocket": SocketLog(
            AuthMiddlewareStack(
                WebsocketGate(
                    URLRouter(
                        [
                            *conversation_sockets,
                            *ingest_sockets,
                            re_path("", nothing_here),  # type: ignore[arg-type]
                        ]
                    )
                )
            )
        ),
    }
)

application = TrustedProxies(
    PortRouter(
        everything,
        {
            config().mcp_port: only_path("/mcp/chat", http),
            config().agents_mcp_port: only_path("/mcp/agents", http),
        },
    )
)
