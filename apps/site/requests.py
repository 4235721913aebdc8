"""How daphne's requests are read: as they come.

Twisted parses every form before the application sees it (and hangs up on one that is malformed),
and spells a line of an access log that nobody reads. Django parses forms itself, and `apps.logs`
tells of requests.
"""

from functools import partial
from typing import Any

from daphne import server
from daphne.http_protocol import HTTPFactory, WebRequest


class PlainRequests(HTTPFactory):
    """Daphne's factory, with neither."""

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = partial(WebRequest, parsePOSTFormSubmission=False)
        return protocol

    def log(self, request: WebRequest) -> None:
        """Nothing."""


def install() -> None:
    """Use it for every request of this process."""
    server.HTTPFactory = PlainRequests
