"""A repository for the code browser, and places in its lines."""

from collections.abc import Iterator

import pytest

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
