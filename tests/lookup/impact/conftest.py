"""A small package with its tests, in a git repository; a change lies in its work tree."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.git import commit_all, git, init
from tests.support.ingested import ingested_once, write_files

__all__ = ["Ask", "ask", "diff_of", "shop"]

CART = '''\
"""A cart."""

from shop.tax import RATE, with_tax


class Cart:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return with_tax(sum(self.prices))

    @property
    def is_empty(self):
        return not self.prices


def checkout(cart):
    return cart.total()
'''
FILES = {
    "shop/__init__.py": "from shop.cart import Cart, checkout\n",
    "shop/cart.py": CART,
    "shop/tax.py": """\
RATE = 0.25


def with_tax(price):
    return price + _share(price)


def _share(price):
    return price * RATE


def unused(price):
    return price
""",
    "tests/conftest.py": """\
import pytest

from shop import Cart


@pytest.fixture
def full_cart():
    return Cart([1, 2])
""",
    "tests/test_cart.py": """\
from shop.cart import Cart


def test_total():
    assert Cart([100]).total() == 125


def test_is_empty(full_cart):
    assert not full_cart.is_empty


def test_nothing():
    assert True
""",
    "tests/test_tax.py": """\
from shop.tax import with_tax


def test_with_tax():
    assert with_tax(100) == 125
""",
    "docs/tax.md": "# Tax\n\nThe rate is 25 %.\n",
    "private/plan.py": "def plan():\n    return 1\n",
    "ignored.txt": "secret\n",
    ".codeinfoignore": "private/\n",
}


def make(folder: Path) -> Path:
    """Commit the package; the tax and its document change together in four commits."""
    init(folder, "-b", "main")
    write_files(folder, FILES)
    commit_all(folder, "Add the shop")
    git(folder, "tag", "first")
    for rate in (21, 22, 25):
        tax = FILES["shop/tax.py"].replace("0.25", f"0.{rate}")
        write_files(folder, {"shop/tax.py": f"# Since {rate}\n{tax}"})
        write_files(folder, {"docs/tax.md": f"# Tax\n\nThe rate is {rate} %.\n\nSince {rate}\n"})
        commit_all(folder, f"Take {rate} %")
    return folder


@pytest.fixture(scope="module")
def shop(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of `shop`, as it is committed. A test that changes it changes it back."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("impact")))
    make(base / "shop")
    with ingested_once(django_db_blocker, base, {"shop": {}}):
        yield base / "shop"


@pytest.fixture
def changed(shop: Path) -> Iterator[Callable[[dict[str, str | None]], Path]]:
    """changed({path: text}) writes files into the work tree; None removes one."""

    def change(files: dict[str, str | None]) -> Path:
        write_files(shop, {path: text for path, text in files.items() if text is not None})
        for path, text in files.items():
            if text is None:
                (shop / path).unlink()
        return shop

    yield change
    git(shop, "checkout", "-q", ".")
    git(shop, "clean", "-qfd")


Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(client: Client) -> Ask:
    """ask(base="HEAD~1") is the status and the JSON of Impact about `shop`."""

    def asked(**body: Any) -> tuple[int, dict[str, Any]]:
        form = {"repository": "shop"} | body
        response = client.post("/tools/impact", form, content_type="application/json")
        return response.status_code, response.json()

    return asked


def diff_of(folder: Path, *arguments: str) -> str:
    """What `git diff` writes."""
    return subprocess.run(
        ("git", "-C", str(folder), "diff", *arguments), capture_output=True, check=True, text=True
    ).stdout
