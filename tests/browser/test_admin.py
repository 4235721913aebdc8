"""The admin in a browser: axe has no finding, nothing scrolls sideways, and the theme is the
app's."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import WIDE, Complaints, go, load_again, new_context, settled
from tests.browser.product import Product, running
from tests.support import forks

FILL = """
from uuid import uuid4
from django.contrib.auth.models import Group, User
from apps.conversations.models import Conversation, Turn
from apps.index.models import IngestRun, Root, SourceFile
Group.objects.create(name="readers of everything " * 5)
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
run = IngestRun.objects.create(
    operation="start", path="/src/" + long, name=long, model=long, state="error", last_error=text
)
root = Root.objects.create(
    name=long, path="/src/" + long, model=long, description=text, last_error=text
)
SourceFile.objects.create(
    root=root, run=run, document=uuid4(), path=f"{long}/{long}", problem=text, since=1
)
"""
NARROW = (1280, 900)
# The page, or a part of it that can be scrolled. Code may be: its lines do not wrap.
SIDEWAYS = """() => [...document.querySelectorAll("*")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && !e.matches("pre, pre *, select"))
  .filter((e) => e.matches("html") || /auto|scroll/.test(getComputedStyle(e).overflowX))
  .map((e) => e.id || e.className || e.tagName)"""

# Fields that end to the right of the content, where they are cut off.
CUT = """() => {
  const content = document.getElementById("content").getBoundingClientRect();
  return [...document.querySelectorAll(".form-row :is(input, select, textarea)")]
    .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > content.right)
    .map((e) => e.name);
}"""


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


TABLES = ["conversation", "turn"], ["root", "ingestrun", "sourcefile"], ["user", "group"]
LISTS = [
    f"{app}/{table}/"
    for app, tables in zip(("conversations", "index", "auth"), TABLES, strict=True)
    for table in tables
]
# The links to follow from a list; "" is its first row.
WAYS = [("",), ("", "History")]
DELETABLE = ("conversations/conversation/", "index/root/", "auth/user/", "auth/group/")
PAGES: list[tuple[str, tuple[str, ...]]] = [
    *((path, ()) for path in ("", "conversations/", "index/", "auth/", "password_change/")),
    ("password_change/done/", ()),
    *((path, ()) for path in (*LISTS, "conversations/share/")),
    *((path, ()) for path in ("auth/user/add/", "auth/group/add/")),
    *((path, way) for path in LISTS for way in WAYS),
    *((path, ("", "Delete")) for path in DELETABLE),
    ("auth/user/", ("", "Reset password")),
]


@pytest.mark.parametrize(("path", "way"), PAGES)
def test_a_page_of_the_admin_has_nothing_wrong(
    administrator: Page, complaints: Complaints, path: str, way: tuple[str, ...]
) -> None:
    page = administrator
    complaints.listen(page)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    go(page, f"/admin/{path}")
    for name in way:
        link = page.get_by_role("link", name=name, exact=True).first
        (link if name else page.locator("#result_list tbody a").first).click()
    settled(page)
    assert page.evaluate(SIDEWAYS) == []
    assert objections_of_looks(page, wide=NARROW) == []
    assert page.evaluate(SIDEWAYS) == []  # a phone is the last look
    assert page.evaluate(CUT) == []
    complaints.hush(page)
    assert complaints.unexpected() == []


def test_pages_of_the_admin_without_a_login_have_nothing_wrong(
    browser: Browser, served: Product
) -> None:
    context = new_context(browser, served.url, reduced_motion="reduce")
    page = context.new_page()
    go(page, "/admin/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert").or_(page.locator(".errornote"))).to_be_visible()
    assert objections_of_looks(page, wide=NARROW) == []
    page.get_by_label("Password").fill("right-one-9")
    page.get_by_role("button", name="Log in").click()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Logged out")).to_be_visible()
    assert objections_of_looks(page, wide=NARROW) == []
    assert page.evaluate(SIDEWAYS) == []
    context.close()


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
