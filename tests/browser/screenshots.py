"""`make screenshots`: each page of the running product, light, dark and phone, to docs/screenshots.

Everything in the pictures is real: this checkout's own source is ingested, searched and asked
about, with no language model connected. Pages that have more to show than they open with are in
PAGES; all others are those that the sidebar leads to. .gitignore names the pictures that documents
show; the others stay on the machine that made them.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from apps.conversations.examples import OWN_EXAMPLES
from tests.browser import sample_history
from tests.browser.chromium import CHROMIUM, PHONE, chromium, new_context, settled
from tests.browser.code_lines import line, place_of, wait_for_colours
from tests.browser.product import HOME, Product, running
from tests.browser.sample_shop import SHOP
from tests.browser.states import HERE, shows
from tests.lookup.harbours import FILES

TARGET = HOME / "docs" / "screenshots"
# Wide enough for an answer with its lines beside it, small enough to load with the README.
PICTURE = (1280, 800)
VARIANTS = {"light": (PICTURE, False), "dark": (PICTURE, True), "phone": (PHONE, False)}
QUESTION = OWN_EXAMPLES[-1]
INGEST_MILLISECONDS = 180_000


@contextmanager
def opened(browser: Browser, product: Product, path: str) -> Iterator[dict[str, Page]]:
    """The page at `path` in every variant, each in a profile of its own."""
    pages = {}
    for variant, (size, dark) in VARIANTS.items():
        context = new_context(
            browser,
            product.url,
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        pages[variant] = context.new_page()
        pages[variant].goto(path)
    yield pages
    for page in pages.values():
        page.context.close()


def shoot(name: str, pages: dict[str, Page], ready: Callable[[Page], None]) -> None:
    """Write `<name>-<variant>.png` of each page, once it is ready."""
    for variant, page in pages.items():
        ready(page)
        expect(page.locator("[data-live-text]")).to_have_text("Connected")
        page.screenshot(path=TARGET / f"{name}-{variant}.png")
        print(f"docs/screenshots/{name}-{variant}.png")


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


def start(page: Page, folder: Path, description: str) -> None:
    page.get_by_label("Folder path").fill(str(folder))
    page.get_by_label("Display name").fill(folder.name)
    page.get_by_label("Description").fill(description)
    page.get_by_role("button", name="Start ingest").click()


def completed(page: Page) -> None:
    expect(page.locator("#active-run")).to_contain_text("Completed", timeout=INGEST_MILLISECONDS)


def under_way(page: Page) -> None:
    percent = page.locator("#active-run .run-pct")
    expect(percent).to_have_text(re.compile("^[2-9][0-9] %"), timeout=INGEST_MILLISECONDS)


def shoot_ingest(browser: Browser, product: Product) -> None:
    with opened(browser, product, "/ingest") as pages:
        start(
            pages["light"], copy_checkout(product.repos / "codeinfo"), "This product's own source"
        )
        completed(pages["light"])
        many = product.repos / "archive"
        for number in range(6000):
            file = many / f"year_{number % 50}" / f"entry_{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"def entry():\n    return {number}\n")
        start(pages["light"], many, "")
        shoot("ingest", pages, under_way)
        pages["light"].get_by_role("button", name="Cancel ingest").click()
        for page in pages.values():
            expect(page.locator("#active-run")).to_contain_text("Last ingest")
            page.get_by_role("button", name="Details").click()
            page.get_by_role("link", name="with reasons").click()
        shoot(
            "ingest-skipped", pages, lambda page: expect(page.locator("#skip-rows")).to_be_visible()
        )


def answered(page: Page) -> None:
    expect(page.locator(".turn").get_by_text("Complete", exact=True)).to_be_visible(timeout=60_000)


def opened_at_its_lines(page: Page) -> None:
    """An answer from its beginning; where there is room, the first citation's lines beside it."""
    answered(page)
    size = page.viewport_size
    if size is not None and size["width"] > PHONE[0]:
        page.locator(".snippet .cite").first.click()
        expect(page.locator(".viewer .is-cited").first).to_be_visible()
    from_its_beginning(page)


def from_its_beginning(page: Page) -> None:
    answered(page)
    page.locator("#transcript").evaluate("box => { box.scrollTop = 0; }")


def ask(pages: dict[str, Page], question: str) -> None:
    """Ask in the first variant, and open the answer in all."""
    first, *others = pages.values()
    settled(first)
    first.get_by_label("Message").fill(question)
    first.get_by_role("button", name="Send").click()
    answered(first)
    for page in others:
        # Without the citation that is open beside the first one.
        page.goto(first.url.partition("&")[0])


def shoot_chat(browser: Browser, product: Product) -> None:
    with opened(browser, product, "/chat") as pages:
        ask(pages, QUESTION)
        shoot("chat", pages, opened_at_its_lines)


def shown(locator: str) -> Callable[[Page], None]:
    return lambda page: expect(page.locator(locator).first).to_be_visible()


def code_of(file: str, definition: str) -> str:
    """Where the code browser shows `definition` of a file of this checkout, marked."""
    lines = (HOME / file).read_text().splitlines()
    first = next(n for n, line in enumerate(lines, 1) if line.startswith(definition))
    last = next(n for n in range(first, len(lines)) if not lines[n] and not lines[n + 1])
    return f"/code/codeinfo/{file}?lines={first}-{last}"


# Name → where it is, and when it is ready.
PAGES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "home": ("/", shows(HERE)),
    "search": (f"/search?q={QUESTION.replace(' ', '+')}", shown(".hit")),
    "symbols": ("/search?mode=symbols&q=SearchQuery", shown(".hit")),
    "code": (code_of("apps/retrieval/search.py", "def search("), shown(".is-cited")),
    "logs": ("/logs", shown("[data-entry]")),
}
# Shot with what was done to them.
SHOT = ("/chat", "/ingest")


def with_callers(page: Page) -> None:
    """The panel of a component whose name was clicked."""
    place = SHOP["web/Cart.vue"].split("import OrderRow")[0].count("\n") + 1
    wait_for_colours(page, place)
    line(page, place).click(position=place_of(page, place, "OrderRow"))
    expect(page.get_by_role("region", name="Callers")).to_contain_text("Cart.vue")


def shoot_shop(browser: Browser, product: Product) -> None:
    """A notebook, a component with its callers, a search in Chinese, the outline of an API."""
    folder = product.repos / "shop"
    for name, text in SHOP.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with opened(browser, product, "/ingest") as pages:
        start(pages["light"], folder, "Files of other kinds")
        completed(pages["light"])
    for name, (path, ready) in {
        "notebook": ("/code/shop/notebooks/churn.ipynb", shown(".cell")),
        "component": ("/code/shop/web/Cart.vue", with_callers),
        "chinese": ("/search?repository=shop&q=订单折扣怎么计算", shown(".hit")),
        "openapi": ("/code/shop/docs/openapi.yaml", shown(".viewer__code")),
    }.items():
        with opened(browser, product, path) as pages:
            shoot(name, pages, ready)


def with_url(page: Page) -> None:
    page.get_by_label("Folder path").fill("https://github.com/team/harbour@v1")


def with_ref(page: Page) -> None:
    page.get_by_role("button", name="Details").click()
    page.get_by_label("Another branch, tag or commit").fill("v1")


def shoot_history(browser: Browser, product: Product) -> None:
    """What git tells of a repository, and where the repositories come from."""
    folder = sample_history.make(product.repos / "pier")
    with opened(browser, product, "/ingest") as pages:
        start(pages["light"], folder, "A repository with a history")
        completed(pages["light"])
    file = f"/code/pier/{sample_history.NEW}"
    for name, (path, ready) in {
        "history": (f"{file}?view=history", shown(".history__list")),
        "blame": (f"{file}?view=blame", shown(".blame")),
        "change": ("/code/pier?view=diff&to=HEAD", shown(".history__file")),
        "impact": ("/code/pier?view=impact", shown(".graph__svg")),
        "ingest-url": ("/ingest", with_url),
        "ingest-ref": ("/ingest", with_ref),
    }.items():
        with opened(browser, product, path) as pages:
            shoot(name, pages, ready)


# Questions about the files of tests/lookup/harbours.py.
SHAPES = {
    "callers": "What calls weigh()?",
    "importers": "Which files import src/harbour/views.py?",
    "uses": "Where is MAX_BERTHS used?",
    "tests": "Where is Crane.lift tested?",
    "configuration": "Where is MAX_BERTHS configured?",
    "definition": "Where is Crane.lift defined?",
    "implementations": "subclasses of Machine",
    "path": "How does serve() reach weigh()?",
    "steps": "What does serve() do, step by step?",
    "file": "What does crane.py do?",
    "entry-points": "Where is the entry point?",
    "route": "Where is route /ships/7?",
    "trace": (
        "Traceback (most recent call last):\n"
        '  File "harbour/cli.py", line 10, in serve\n    Crane().lift(3)\n'
        '  File "harbour/crane.py", line 23, in weigh\n'
        '    raise ValueError("a load has no negative weight")\n'
        "ValueError: a load has no negative weight"
    ),
    "commands": "How is this project built?",
    "languages": "Which languages is this written in?",
    "modules": "How is this repository organised?",
    "overview": "What does this repository do?",
    "nothing": "What calls `launch_rocket`?",
}


def shoot_shapes(browser: Browser, product: Product) -> None:
    """An answer of each shape."""
    folder = product.repos / "harbour"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with opened(browser, product, "/ingest") as pages:
        start(pages["light"], folder, "A repository in many languages")
        completed(pages["light"])
    for name, question in SHAPES.items():
        with opened(browser, product, "/chat?repository=harbour") as pages:
            ask(pages, question)
            shoot(f"shape-{name}", pages, from_its_beginning)


def sidebar(browser: Browser, product: Product) -> dict[str, tuple[str, Callable[[Page], None]]]:
    """The pages that the sidebar leads to and that are not in PAGES, by their path."""
    with opened(browser, product, "/") as pages:
        links = pages["light"].locator("#sidebar .nav a").all()
        paths = [link.get_attribute("href") or "" for link in links]
    known = (*SHOT, *(path.partition("?")[0] for path, _ in PAGES.values()))
    new = [path for path in paths if not any(f"{one}/".startswith(f"{path}/") for one in known)]
    return {path.strip("/"): (path, shown("main")) for path in new}


def shoot_all(browser: Browser, product: Product) -> None:
    with opened(browser, product, "/chat") as pages:
        shoot("chat-empty", pages, shown("#content"))
    shoot_ingest(browser, product)
    for name, (path, ready) in (PAGES | sidebar(browser, product)).items():
        with opened(browser, product, path) as pages:
            shoot(name, pages, ready)
    shoot_shop(browser, product)
    shoot_history(browser, product)
    shoot_shapes(browser, product)
    shoot_chat(browser, product)


def main() -> int:
    if not CHROMIUM.exists():
        print(f"{CHROMIUM} is not there: apt-get install {CHROMIUM.name}", file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    # The path is in the pictures: the same each time.
    folder = Path(tempfile.gettempdir()) / "codeinfo-demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        with running(folder) as product, chromium() as browser:
            shoot_all(browser, product)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
