"""A repository for the code browser, and places in its lines."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.support.ingested import CALLER, SAMPLE

# 3,000 lines: classes of methods.
LONG = "".join(
    f"class Keeper{n // 10}:\n"
    if n % 10 == 0
    else f"    def step_{n}(self):\n"
    f'        """Keep the {n}th lamp."""\n'
    f"        oil = {n}\n"
    f"        self.fill(oil)\n"
    f"        return self.step_{n + 1}() + oil\n"
    for n in range(652)
)
HOSTILE = {
    "odd/<img src=x onerror=alert(1)>.py": "x = 1\n",
    "odd/line\nbreak.py": "x = 2\n",
    "odd/\u202egnp.py": "x = 3\n",
    f"odd/{'long_' * 40}.py": "x = 4\n",
    f"{'deep/' * 40}end.py": "x = 5\n",
    # Its long line is less than half of it: it is not taken for minified.
    "wide.py": f"# {'wide ' * 20}\n" * 50 + f"WIDE = '{'w' * 4_000}'\n",
}
MACROS = (
    "#ifdef A\n#define LIMIT 1\n#else\n#define LIMIT 2\n#endif\nint limit(void) { return LIMIT; }\n"
)
FILES = {**SAMPLE, **CALLER, **HOSTILE, "src/long.py": LONG, "src/limit.c": MACROS}
LONG_FILE = "/code/lantern/src/long.py"


@pytest.fixture(scope="module")
def lantern(product: Product) -> Iterator[None]:
    with ingested(product, "lantern", FILES):
        yield


def line(page: Page, number: int) -> Locator:
    return page.locator(".viewer__code .line").filter(has=page.locator(f'.ln[name="L{number}"]'))


def middle_of(page: Page, number: int, name: str) -> tuple[float, float]:
    """The middle of a name in a line, in pixels of the window."""
    x, y = line(page, number).evaluate(
        """(line, name) => {
            const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const at = walker.currentNode.data.search(new RegExp(`\\\\b${name}\\\\b`));
                if (at < 0) continue;
                const range = document.createRange();
                range.setStart(walker.currentNode, at);
                range.setEnd(walker.currentNode, at + name.length);
                const box = range.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }
        }""",
        name,
    )
    return float(x), float(y)


def panel(page: Page) -> Locator:
    return page.get_by_role("dialog", name=re.compile("Definitions|Names in line"))
