"""Routes connections by the port on which they came in."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class PortRouter:
    """Calls the application of the connection's port, or the default one."""

    def __init__(self, default: Application, by_port: Mapping[int, Application]) -> None:
        self.default = default
        self.by_port = by_port

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        _, port = scope.get("server") or (None, None)
        await self.by_port.get(port or 0, self.default)(scope, receive, send)


def only_path(path: str, application: Application) -> Application:
    """Return an application that serves HTTP at one path, whatever path is requested."""

    async def endpoint(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await nothing_here(scope, receive, send)
            return
        await application({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    return endpoint


async def nothing_here(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An application without endpoints: 404 for HTTP, close code 4404 for websockets."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4404})
        return
    body = b'{"status":"error","code":"NOT_FOUND","message":"No endpoint is served on this port."}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
