"""Debian's Chromium, driven by Playwright."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    WebSocketRoute,
    sync_playwright,
)

from tests.support.waiting import PATIENCE

# Without windows a page takes half as much of the processor.
PROGRAMS = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
CHROMIUM = next(filter(Path.exists, PROGRAMS), PROGRAMS[0])
# Of several lists of features Chromium takes the last, so Playwright's own is said again here: all
# of it that Debian's Chromium knows.
OF_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)
# The list below the address bar is a web page too. Nobody sees it, and each window begins with it,
# which takes longer than the page that is looked at.
ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
ARGUMENTS = (
    f"--disable-features={','.join((*OF_PLAYWRIGHT, *ADDRESS_BAR))}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
OpenPage = Callable[..., Page]
WIDE, PHONE = (1440, 900), (390, 844)
PLAIN = "/version"  # no page runs there
# A form that came back with its errors: the browser reports the status, which is as it should be.
# And what htmx says of a request whose page was left meanwhile; of a failed one it says sendError.
EXPECTED = ("status of 422", "htmx:sendAbort", "htmx:afterRequest")
# Before the scripts of each page: what its socket brings is there.
HEAR = 'document.addEventListener("htmx:wsAfterMessage", () => (window.heard = true));'
SETTLED = """async (patience) => {
  const is = (selector) => document.querySelector(selector) !== null;
  const closed = () => document.documentElement.dataset.live === "closed";
  const deaf = () => is("[data-live]") && !window.heard && !closed();
  const pending = () => is(".htmx-request:not(button)") || deaf();
  const end = Date.now() + patience;
  do {
    while (pending())
      if (Date.now() > end) throw new Error("The page has not received all that it asked for.");
      else await new Promise((done) => setTimeout(done, 20));
    await document.fonts.ready;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  } while (pending()); // What has come may ask for more.
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """While the block runs, this thread counts as being inside an event loop: no ORM here."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def new_context(browser: Browser, url: str, **options: Any) -> BrowserContext:
    """Make a browser profile whose pages `settled` can wait for."""
    context = browser.new_context(base_url=url, **options)
    context.add_init_script(HEAR)
    return context


def settled(page: Page) -> None:
    """Wait until a page has what it asks for when it opens: each replaces a part of it, and moves
    others. That is the first message of its socket, unless that is refused, and its requests, but
    not those of buttons: what a test presses, it waits for itself."""
    page.evaluate(SETTLED, PATIENCE * 1000)


def go(page: Page, address: str) -> None:
    page.goto(address)
    settled(page)


def load_again(page: Page) -> None:
    page.reload()
    settled(page)


class Complaints(list[str]):
    """What a page complained of: console errors (CSP violations among them), exceptions.

    Texts added to `expected` are not complaints.
    """

    def __init__(self) -> None:
        super().__init__()
        self.expected = list(EXPECTED)

    def listen(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", self._on_error)

    def hush(self, page: Page) -> None:
        """The end of `listen`."""
        page.remove_listener("console", self._on_console)
        page.remove_listener("pageerror", self._on_error)

    def _on_error(self, error: Error) -> None:
        self.append(str(error))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.append(message.text)

    def unexpected(self) -> list[str]:
        return [text for text in self if not any(part in text for part in self.expected)]


class Line:
    """A page's sockets at a path, from its next load on: refused for as long as it is `broken`."""

    def __init__(self, page: Page, path: str) -> None:
        self.broken = True
        page.route_web_socket(re.compile(path), self._route)

    def _route(self, socket: WebSocketRoute) -> None:
        if self.broken:
            socket.close(code=1001)
        else:
            socket.connect_to_server()


class Profiles:
    """Browser profiles for the pages of a server, each used by one test after another: to make one,
    and to fill its cache, takes as long as a test."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self._url = browser, url
        self._all: list[BrowserContext] = []
        self._free: list[BrowserContext] = []

    def take(self) -> BrowserContext:
        """A profile without cookies, and with nothing stored. Nothing moves in its pages: what
        turns while somebody waits is drawn sixty times a second."""
        if self._free:
            return self._free.pop()
        context = new_context(
            self._browser,
            self._url,
            viewport={"width": WIDE[0], "height": WIDE[1]},
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        # It stays, for only a page of the server can delete what others stored.
        context.new_page().goto(PLAIN)
        self._all.append(context)
        return context

    def give_back(self, context: BrowserContext) -> None:
        plain, *others = context.pages
        for page in others:
            page.close()
        plain.evaluate("localStorage.clear()")
        context.clear_cookies()
        self._free.append(context)

    def close(self) -> None:
        for context in self._all:
            context.close()


@contextmanager
def opened_pages(profiles: Profiles, complaints: Complaints) -> Iterator[Callable[..., Page]]:
    """Yield `open_one("/ingest", size=PHONE, dark=True)`: a new page, settled, in a browser profile
    that no other page of the test has. At the end no page may have complained unexpectedly."""
    taken = []

    def open_one(
        path: str = "/",
        *,
        size: tuple[int, int] = WIDE,
        dark: bool = False,
        script: str = "",
        waits: bool = True,
    ) -> Page:
        taken.append(profiles.take())
        page = taken[-1].new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if dark else "light")
        if script:
            page.add_init_script(script)
        complaints.listen(page)
        page.goto(path)
        if waits:
            settled(page)
        return page

    yield open_one
    for context in taken:
        profiles.give_back(context)
    assert not complaints.unexpected(), complaints.unexpected()


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def drawn(page: Page) -> None:
    """Wait until the page has been drawn with all that has happened to it."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
