"""The front page of a repository, its map, and rendered Markdown, as a reader uses them."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import PHONE, WIDE, go
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at
from tests.browser.product import Product
from tests.browser.repository import ingested

README = """\
# Quay

Start at [the crane](crane/lift.py), or [below](#use).

## Use

Lift.
"""
MAIN = """\
from crane import lift


def main():
    lift.lift()


if __name__ == "__main__":
    main()
"""
FILES = {
    "README.md": README,
    "crane/lift.py": "from crane import rope\n\n\ndef lift():\n    return rope.pull()\n",
    "crane/rope.py": "def pull():\n    return 1\n",
    "main.py": MAIN,
}


@pytest.fixture(scope="module")
def quay(product: Product) -> Iterator[None]:
    with ingested(product, "quay", FILES):
        yield


LONG = "an_unbroken_name_" * 11
ODD_NAMES = ["<script>alert(1)</script>", LONG, "\u202egnp.txt\u202c", "ملف", "a  b%25", "a\nb"]
ODD = {
    **{f"{name}/{name}.py": f"import {LONG}\n\nx = {n}\n" for n, name in enumerate(ODD_NAMES)},
    f"{LONG}.py": "def main(): ...\n",
    "README.md": f"# {LONG}\n\n```python\ndef f():\n    return '{LONG * 3}'\n```\n",
    "use.py": f"import {LONG}\n\nif __name__ == '__main__':\n    {LONG}.main()\n",
}


@pytest.fixture(scope="module")
def odd(product: Product) -> Iterator[str]:
    name = f"<b>odd {LONG}"
    with ingested(product, name, ODD):
        yield f"/code/{quote(name, safe='')}"


def test_names_of_any_length_and_script_do_not_widen_a_page(odd: str, look: OpenPage) -> None:
    page = look(odd)
    main = page.get_by_role("main")
    expect(main.locator("pre .k").first).to_have_text("def")
    for folder in ("", f"/{LONG}", f"/{quote(ODD_NAMES[0])}"):
        for view in ("", "?view=map"):
            go(page, f"{odd}{folder}{view}")
            assert not objections_of_looks(page), (folder, view)
            assert not sideways_at(page, [320, PHONE[0], 800, WIDE[0], 1600]), (folder, view)


def test_a_front_page_leads_to_the_map_and_the_map_to_code(quay: None, look: OpenPage) -> None:
    page = look("/code/quay")
    main = page.get_by_role("main")
    expect(main.get_by_role("heading", name="Quay")).to_be_visible()
    expect(main.get_by_role("region", name="Overview")).to_contain_text("Start here")
    assert not objections_of_looks(page)
    assert not sideways_at(page, [PHONE[0], 800, WIDE[0]])
    main.get_by_role("link", name="Map").click()
    expect(page.get_by_role("region", name="Picture of the imports")).to_be_visible()
    assert not objections_of_looks(page)
    assert not sideways_at(page, [PHONE[0], 800, WIDE[0]])
    tiles = page.get_by_role("group", name="Folders and files of quay")
    tiles.get_by_role("link", name="crane: 2 files, python").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/code/quay/crane\?view=map$"))
    page.locator(".graph__node", has_text="lift.py").click()
    expect(page).to_have_url(re.compile("/code/quay/crane/lift.py$"))


def test_markdown_is_read_and_its_lines_are_in_its_source(quay: None, look: OpenPage) -> None:
    page = look("/code/quay/README.md")
    page.get_by_role("link", name="below").click()
    expect(page.get_by_role("heading", name="Use")).to_be_in_viewport()
    page.get_by_role("link", name="the crane").click()
    expect(page).to_have_url(re.compile("/code/quay/crane/lift.py$"))
    go(page, "/code/quay/README.md#L5")
    expect(page).to_have_url(re.compile(r"README.md\?lines=5#L5$"))
    expect(page.locator(".line.is-cited")).to_contain_text("## Use")
    page.get_by_role("link", name="Preview").click()
    expect(page.get_by_role("heading", name="Quay")).to_be_visible()
