"""`make screenshots`: the pages of the running product, light, dark, on a phone and wide, to
docs/screenshots.

Two sets. The pictures of documents show this checkout's own source, ingested, searched and asked
about with no language model connected: .gitignore names those that documents show. The gallery
(docs/screenshots/gallery) has each state of states.py and drawn_pages.py, as long as its page is.
`make screenshots OF='worn|admin'` draws only states whose name begins so.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, expect

from apps.conversations.examples import OWN_EXAMPLES
from tests.browser.chromium import PHONE, chromium, go, settled
from tests.browser.drawn_pages import DRAWN
from tests.browser.drawn_servers import DRAWN_START
from tests.browser.gallery import gallery, opened, show, visited
from tests.browser.product import HOME, Product, running
from tests.browser.states import STATES, State, shows

TARGET = HOME / "docs" / "screenshots"
# Wide enough for an answer with its lines beside it, small enough to load with the README.
PICTURE = (1280, 800)
# The width and whether it is dark.
LOOKS = {"light": (1280, False), "dark": (1280, True), "phone": (390, False), "wide": (1600, False)}
PHONE_LOOKS = {"phone": (390, False), "dark": (390, True)}
# How much higher a page must be to show all of its boxes, or of its body.
HIDDEN = """() => Math.max(0, ...[document.documentElement, ...document.querySelectorAll(
    ".page, .transcript, .viewer__code, .dialog__body, .drawer__body")]
  .filter((e) => e.checkVisibility()).map((e) => e.scrollHeight - e.clientHeight))"""
HIGHEST = 2400
QUESTION = OWN_EXAMPLES[-1]
WAIT_MILLISECONDS, INGEST_MILLISECONDS = 20_000, 180_000


def draw_states(browser: Browser, folder: Path, of: str) -> bool:
    """Return True if all states were reached; the others have no pictures."""
    target = TARGET / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    are_all = True
    with gallery(folder, browser, DRAWN_START) as servers:
        for name, state in (STATES | DRAWN).items():
            if not re.match(of, name):
                continue
            try:
                with opened(servers, state) as page:
                    draw_state(page, state, f"{target}/{name}")
                print(f"docs/screenshots/gallery/{name}-*.png", flush=True)
            except (AssertionError, Error) as error:
                are_all = False
                print(f"{name} is not reached: {error}", flush=True)
    return are_all


def draw_state(page: Page, state: State, begin: str) -> None:
    for look, (width, dark) in looks_of(state).items():
        show(page, width, dark=dark)
        stretch(page)
        page.screenshot(path=f"{begin}-{look}.png", animations="disabled")


def looks_of(state: State) -> dict[str, tuple[int, bool]]:
    return PHONE_LOOKS if state.width == PHONE[0] else LOOKS


def stretch(page: Page) -> None:
    """Make the window as high as what the page has to show."""
    settled(page)
    size = page.viewport_size
    hidden = page.evaluate(HIDDEN)
    if size and hidden:
        height = min(HIGHEST, size["height"] + hidden)
        page.set_viewport_size({"width": size["width"], "height": height})
        settled(page)


def copy_checkout(folder: Path) -> Path:
    """The tracked files of this checkout, as a folder that may be ingested."""
    names = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "apps",
            "codeinfo",
            "templates",
            "static",
            "*.md",
            ".codeinfoignore",
            "requirements",
        ],
        cwd=HOME,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HOME / name, folder / name)
    return folder


def code_of(file: str, definition: str) -> str:
    """Where the code browser shows `definition` of a file of this checkout, marked."""
    lines = (HOME / file).read_text().splitlines()
    first = next(n for n, line in enumerate(lines, 1) if line.startswith(definition))
    last = next(n for n in range(first, len(lines)) if not lines[n] and not lines[n + 1])
    return f"/code/codeinfo/{file}?lines={first}-{last}"


def ingest_checkout(page: Page, product: Product) -> None:
    folder = copy_checkout(product.repos / "codeinfo")
    go(page, "/ingest")
    page.get_by_label("Folder path").fill(str(folder))
    page.get_by_label("Display name").fill(folder.name)
    page.get_by_label("Description").fill("This product's own source")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.locator("#active-run")).to_contain_text("Completed", timeout=INGEST_MILLISECONDS)


def answered(page: Page) -> None:
    """An answer from its beginning, and the first citation's lines beside it."""
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".turn").get_by_text("Complete", exact=True)).to_be_visible(timeout=60_000)
    page.locator(".snippet .cite").first.click()
    expect(page.locator(".viewer .is-cited").first).to_be_visible()
    page.locator("#transcript").evaluate("box => { box.scrollTop = 0; }")


def draw_documents(browser: Browser, folder: Path) -> None:
    code = code_of("apps/retrieval/search.py", "def search(")
    with running(folder) as product, visited(browser, product) as page:
        ingest_checkout(page, product)
        for name, path, reach in (
            ("chat", "/chat", answered),
            ("code", code, shows("def search(")),
        ):
            page.set_viewport_size({"width": PICTURE[0], "height": PICTURE[1]})
            go(page, path)
            reach(page)
            for look, dark in (("light", False), ("dark", True)):
                page.emulate_media(color_scheme="dark" if dark else "light")
                settled(page)
                page.screenshot(path=TARGET / f"{name}-{look}.png", animations="disabled")
                print(f"docs/screenshots/{name}-{look}.png")
            page.emulate_media(color_scheme="light")


def draw(folder: Path, of: str) -> bool:
    """Return True if all states were reached.

    of: an expression; only states whose names begin with what it matches.
    """
    expect.set_options(timeout=WAIT_MILLISECONDS)
    TARGET.mkdir(parents=True, exist_ok=True)
    # The path is in the pictures of documents: the same each time.
    home = Path(tempfile.gettempdir()) / "codeinfo-demo"
    with chromium() as browser:
        if not of:
            shutil.rmtree(home, ignore_errors=True)
            draw_documents(browser, home)
            shutil.rmtree(home)
        return draw_states(browser, folder, of)
