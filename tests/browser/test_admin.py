"""The admin in a browser: axe has no finding, nothing scrolls sideways, and the theme is the
app's."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import WIDE, Complaints, go, load_again, new_context
from tests.browser.product import Product, running
from tests.support import forks

FILL = """
from django.contrib.auth.models import User
from apps.conversations.models import Conversation, Turn
from apps.index.models import IngestRun
User.objects.create_superuser("ada", password="right-one-9")
long = "an-unbroken-name-of-a-model-that-is-long-" * 3
text = "How long is the delay before a call is tried again, and who decides that? " * 4
for n in range(3):
    at = Conversation.objects.create(id=f"c{n}", provider="openai", model=long, title=text)
    for role in ("user", "assistant"):
        Turn.objects.create(
            conversation=at, role=role, provider="openai", model=long, usage={"totalTokens": 1234},
            parts=[{"type": "text", "text": "See `retry.py:3`:\\n\\n```py\\nreturn 1\\n```\\n"}],
        )
IngestRun.objects.create(
    operation="start", path="/src/" + long, name=long, model=long, state="failed", last_error=text
)
"""
NARROW = (1280, 900)
# The page, or a part of it that can be scrolled. Code may be: its lines do not wrap.
SIDEWAYS = """() => [...document.querySelectorAll("*")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && !e.matches("pre, pre *, select"))
  .filter((e) => e.matches("html") || /auto|scroll/.test(getComputedStyle(e).overflowX))
  .map((e) => e.id || e.className || e.tagName)"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("admin")) as product:
        environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
        done = forks.manage("shell", "--no-imports", "-c", FILL, environ=environ)
        assert done.returncode == 0, done.stderr
        yield product


@pytest.fixture(scope="module")
def administrator(browser: Browser, served: Product) -> Iterator[Page]:
    """A page of somebody who has logged in at the admin."""
    context = new_context(browser, served.url, reduced_motion="reduce")
    page = context.new_page()
    go(page, "/admin/")
    assert objections_of_looks(page) == []
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("right-one-9")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="This week")).to_be_visible()
    yield page
    context.close()


@pytest.mark.parametrize(
    ("path", "opens_first"),
    [
        ("", False),
        ("conversations/conversation/", False),
        ("conversations/conversation/", True),
        ("conversations/turn/", False),
        ("conversations/turn/", True),
        ("index/ingestrun/", False),
        ("index/ingestrun/", True),
        ("auth/user/", False),
        ("auth/user/", True),
    ],
)
def test_a_page_of_the_admin_has_nothing_wrong(
    administrator: Page, complaints: Complaints, path: str, opens_first: bool
) -> None:
    page = administrator
    complaints.listen(page)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    go(page, f"/admin/{path}")
    if opens_first:
        page.locator("#result_list tbody a").first.click()
        expect(page.locator("#content form").first).to_be_visible()
    assert page.evaluate(SIDEWAYS) == []
    assert objections_of_looks(page, wide=NARROW) == []
    assert page.evaluate(SIDEWAYS) == []  # a phone is the last look
    complaints.hush(page)
    assert complaints.unexpected() == []


def test_the_theme_of_the_app_is_that_of_the_admin(administrator: Page, served: Product) -> None:
    page = administrator
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    background = "getComputedStyle(document.body).backgroundColor"
    go(page, "/admin/")
    light = page.evaluate(background)
    page.context.add_cookies([{"name": "theme", "value": "dark", "url": served.url}])
    load_again(page)
    assert page.evaluate(background) != light
