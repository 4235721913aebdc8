"""What the browser requests for a page, and what that weighs on the wire."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import query
from playwright.sync_api import Page, expect

from tests.browser.chromium import PLAIN, go
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, ingested
from tests.support import forks

OURS = "/static/js/"
# A real file, cut at 1,600 lines.
LONG = "".join(Path(query.__file__).read_text().splitlines(keepends=True)[:1_600])
LONG_FILE = "/code/querysets/query.py"
PATHS = {
    "Home": "/",
    "Chat": "/chat",
    "Agents": "/agents",
    "Search": "/search?q=chain",
    "Code": "/code",
    "Code: a repository": "/code/querysets",
    "Code: a file of 1,600 lines": LONG_FILE,
    "Ingest": "/ingest",
    "Logs": "/logs",
    "Providers": "/providers",
    "LM Studio": "/lmstudio",
    "Connect": "/connect",
    "API docs": "/api/docs",
    "Login": "/login",
    "Admin": "/admin/",
    "Admin: a list": "/admin/conversations/conversation/",
    "Admin: a user": "/admin/auth/user/add/",
}
MAKE_ADMIN = """
from django.contrib.auth.models import User
User.objects.create_superuser("root", password="right-one-9")
"""


@dataclass
class Load:
    """One load of a page, until it has settled. Websockets are not in it.

    sizes: bytes of the response with its headers, by the number of the request.
    urls: without what the cache had.
    """

    urls: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        return len(self.urls)

    def bytes(self, part: str = "") -> int:
        """Bytes of the responses whose URLs have this part."""
        return sum(self.sizes.get(id, 0) for id, url in self.urls.items() if part in url)

    def sent(self, event: dict[str, Any]) -> None:
        if event["request"]["url"].startswith("http"):  # not data:
            self.urls[event["requestId"]] = event["request"]["url"]

    def received(self, event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            self.cached(event)

    def cached(self, event: dict[str, Any]) -> None:
        self.urls.pop(event["requestId"], None)

    def grown(self, event: dict[str, Any]) -> None:
        """A part of a stream, which may not end; `ended` has the whole of all others."""
        size = self.sizes.get(event["requestId"], 0)
        self.sizes[event["requestId"]] = size + event["encodedDataLength"]

    def ended(self, event: dict[str, Any]) -> None:
        self.sizes[event["requestId"]] = round(event["encodedDataLength"])


def cold_and_warm(page: Page, path: str) -> tuple[Load, Load]:
    """Load a page with an empty cache, and again with what that has left."""
    cdp = page.context.new_cdp_session(page)
    cdp.send("Network.enable")
    loads = (Load(), Load())
    for load in loads:
        go(page, PLAIN)
        if load is loads[0]:
            cdp.send("Network.clearBrowserCache")
        listeners = {
            "Network.requestWillBeSent": load.sent,
            "Network.responseReceived": load.received,
            "Network.requestServedFromCache": load.cached,
            "Network.dataReceived": load.grown,
            "Network.loadingFinished": load.ended,
        }
        for name, listener in listeners.items():
            cdp.on(name, listener)
        go(page, path)
        for name, listener in listeners.items():
            cdp.remove_listener(name, listener)
    cdp.detach()
    return loads


@contextmanager
def weighed_pages(product: Product, page: Page) -> Iterator[dict[str, str]]:
    """Fill a server, and log in to its admin. Yields the name of each page, and its path."""
    environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
    done = forks.manage("shell", "--no-imports", "-c", MAKE_ADMIN, environ=environ)
    assert done.returncode == 0, done.stderr
    with ingested(product, "querysets", {"query.py": LONG}):
        go(page, "/chat")
        page.get_by_label("Provider").select_option("builtin")
        page.get_by_label("Message").fill("How is a queryset copied?")
        page.get_by_label("Message").press("Enter")
        chip = page.locator("#turns > .turn [data-chip]")
        expect(chip).to_have_text("Complete", timeout=LONG_WAIT)
        conversation = page.url.removeprefix(product.url)
        go(page, "/admin/login/")
        page.get_by_label("Name", exact=True).fill("root")
        page.get_by_label("Password").fill("right-one-9")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/admin/")
        yield {**PATHS, "Chat: a conversation": conversation}
