"""Every page in every state that people meet: empty, filled, at work, with an error.

Three servers have them: one that was just installed, one that ingests, and one with repositories
and conversations. A fourth requires a login. Within a server the states are opened in their order.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import go, new_context, settled
from tests.browser.product import Product, running
from tests.browser.states import State
from tests.stand_ins.embeddings_server import EmbeddingsServer, vector_of
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support import forks
from tests.support.agents import command_text, make_agent
from tests.support.git import commit_all, init
from tests.support.ingested import CALLER, SAMPLE, write_files

Start = Callable[[Path, ExitStack], Product]
LONG_WAIT = 120_000
KEEPER = '[codeinfo]\nprovider = "openai"\nmodel = "plain"\ntools = ["VectorSearch"]\n'
# A name in which no line ends by itself, wider than a phone.
UNBROKEN = "agents_of_the_lighthouse_and_of_all_who_sail_by"
SECRETS = {f"keys/server_{number}.pem": "not shown to anyone\n" for number in range(12)}
MAKE_USER = """
from django.contrib.auth.models import User
User.objects.create_user("ada", password="right-one-9")
User.objects.create_superuser("keeper", password="right-one-9")
"""


@dataclass
class Gallery:
    """The servers by name, each started when the first of its states is opened."""

    folder: Path
    browser: Browser
    stack: ExitStack
    start: Mapping[str, Start]
    servers: dict[str, Product] = field(default_factory=dict)
    windows: dict[str, Page] = field(default_factory=dict)

    def server(self, name: str) -> Product:
        if name not in self.servers:
            folder = self.folder / name
            folder.mkdir(parents=True)
            self.servers[name] = self.start[name](folder, self.stack)
            if name in FILL:
                with visited(self.browser, self.servers[name]) as page:
                    FILL[name](page, self.servers[name])
        return self.servers[name]

    def window(self, name: str) -> Page:
        """The page of a server, which its states share: to open another takes twice as long."""
        if name not in self.windows:
            page = visited(self.browser, self.server(name))
            self.windows[name] = self.stack.enter_context(page)
        return self.windows[name]


@contextmanager
def gallery(
    folder: Path, browser: Browser, start: Mapping[str, Start] = MappingProxyType({})
) -> Iterator[Gallery]:
    """start: more kinds of servers."""
    with ExitStack() as stack:
        yield Gallery(folder, browser, stack, {**START, **start})


@contextmanager
def visited(browser: Browser, product: Product, width: int = 1280) -> Iterator[Page]:
    context = new_context(
        browser,
        product.url,
        viewport={"width": width, "height": 900},
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield context.new_page()
    context.close()


@contextmanager
def opened(gallery: Gallery, state: State) -> Iterator[Page]:
    """A page in a state, as wide as the state wants it, and light. Its browser begins without
    cookies, and with nothing stored."""
    page = gallery.window(state.server)
    show(page, state.width, dark=False)
    go(page, state.path)
    state.reach(page)
    settled(page)
    yield page
    page.unroute_all()
    page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    page.context.clear_cookies()


def show(page: Page, width: int, *, dark: bool) -> None:
    page.set_viewport_size({"width": width, "height": 900 if width > 640 else 760})
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")


def _new(folder: Path, stack: ExitStack) -> Product:
    for name in ("shop", "clock"):
        commit_all(write_files(init(folder / "repos" / "team" / name), {**SAMPLE, **CALLER}))
    agents = folder / UNBROKEN
    agents.mkdir()
    config = {"CODEINFO_AGENTS_HOME": str(agents), "LMSTUDIO_BASE_URL": ""}
    return stack.enter_context(running(folder, **config))


def _busy(folder: Path, stack: ExitStack) -> Product:
    """A server whose embedding server never answers an ingest."""
    embeddings = stack.enter_context(EmbeddingsServer())
    ended = threading.Event()
    embeddings.vector_of = lambda text: vector_of(text) if "\n" not in text or ended.wait() else []
    stack.callback(ended.set)
    commit_all(write_files(init(folder / "repos" / "shop"), {**SAMPLE, **CALLER}))
    config = {"CODEINFO_EMBEDDING_BASE_URL": embeddings.url}
    product = stack.enter_context(running(folder, **config))
    stack.callback(ended.set)
    return product


def _filled(folder: Path, stack: ExitStack) -> Product:
    stand_in = stack.enter_context(OpenAIStandIn())
    files = {**SAMPLE, **CALLER, **SECRETS}
    before = {
        name: text.replace("attempt < self", "attempt <= self") for name, text in files.items()
    }
    lighthouse = write_files(init(folder / "repos" / "lighthouse"), before)
    commit_all(lighthouse, "Try again\n\nThe harbour answers every second call.")
    write_files(lighthouse, files)
    write_files(folder / "repos" / "harbour", {f"src/ship_{n}.py": ship(n) for n in range(40)})
    (folder / "repos" / "nothing").mkdir()
    agents = folder / UNBROKEN
    commands = {"watch_ships": command_text("Which ships?", "Where?"), "old_watch": "{}"}
    description = "Watches *ships*. Its rules are at <https://example.org/rules>."
    make_agent(agents, "keeper", KEEPER, description=description, commands=commands)
    make_agent(agents, "wreck", "this is no TOML")
    config = {"CODEINFO_OPENAI_BASE_URL": stand_in.url, "CODEINFO_AGENTS_HOME": str(agents)}
    return stack.enter_context(running(folder, **config))


def ship(number: int) -> str:
    return f'def ship_{number}(port):\n    """Sail ship {number} to a port."""\n    return port\n'


def _guarded(folder: Path, stack: ExitStack) -> Product:
    product = stack.enter_context(
        running(folder, CODEINFO_REQUIRE_LOGIN="true", CODEINFO_INGEST_BASE="")
    )
    environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
    done = forks.manage("shell", "--no-imports", "-c", MAKE_USER, environ=environ)
    assert done.returncode == 0, done.stderr
    return product


def _ingest_all(page: Page, product: Product) -> None:
    for name in ("lighthouse", "harbour"):
        go(page, "/ingest")
        page.get_by_label("Folder path").fill(str(product.repos / name))
        page.get_by_label("Display name").fill(name)
        page.get_by_label("Description").fill(f"The code of the {name}")
        page.get_by_role("button", name="Start ingest").click()
        row = page.locator("#roots [data-row]").filter(has_text=name)
        expect(row).to_contain_text("Completed", timeout=LONG_WAIT)


def _ingest_held(page: Page, product: Product) -> None:
    go(page, "/ingest")
    page.get_by_label("Folder path").fill(str(product.repos / "shop"))
    page.get_by_label("Display name").fill("shop")
    page.get_by_label("Embedding model").select_option("openai:text-embedding-small")
    page.get_by_role("button", name="Start ingest").click()
    run = page.locator("#active-run")
    expect(run.locator("[aria-current=step]")).to_contain_text("Embedding", timeout=LONG_WAIT)


START: dict[str, Start] = {
    "new": _new,
    "busy": _busy,
    "filled": _filled,
    "guarded": _guarded,
}
FILL: dict[str, Callable[[Page, Product], None]] = {"busy": _ingest_held, "filled": _ingest_all}
