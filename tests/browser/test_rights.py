"""What a user who is not staff sees where a login is required: nothing that would be refused."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import WIDE, go, new_context
from tests.browser.product import Product, running
from tests.support import forks

NAME, PASSWORD = "ada", "right-one-9"
MAKE = f"""
from django.contrib.auth.models import User
User.objects.create_user({NAME!r}, password={PASSWORD!r})
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("guarded")
    with running(folder, CODEINFO_REQUIRE_LOGIN="true") as product:
        environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
        done = forks.manage("shell", "--no-imports", "-c", MAKE, environ=environ)
        assert done.returncode == 0, done.stderr
        yield product


@pytest.fixture(scope="module")
def page(browser: Browser, guarded: Product) -> Iterator[Page]:
    viewport = {"width": WIDE[0], "height": WIDE[1]}
    with new_context(browser, guarded.url, viewport=viewport) as context:
        page = context.new_page()
        go(page, "/chat")
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Ask your code")).to_be_visible()
        yield page


def test_the_login_leads_to_the_requested_page(page: Page, guarded: Product) -> None:
    go(page, "/chat")
    expect(page).to_have_url(f"{guarded.url}/chat")
    for name in ("Choose a repository", "Ingest another folder"):
        expect(page.get_by_role("heading", name=name)).to_have_count(0)
    expect(page.get_by_text("Staff chooses what is ingested.")).to_be_visible()
    expect(page.get_by_role("link", name="How to connect")).to_have_count(0)
    expect(page.get_by_label("Message")).to_have_attribute("placeholder", "Ask about your code")


@pytest.mark.parametrize(
    ("path", "there", "away"),
    [
        ("/", "What is connected", "Ingest a folder"),
        ("/ingest", "Staff chooses what is ingested.", "Start ingest"),
        ("/lmstudio", "Staff chooses the address and the token.", "Reset to default"),
    ],
)
def test_actions_of_staff_are_not_offered_to_others(
    page: Page, path: str, there: str, away: str
) -> None:
    complaints: list[str] = []
    page.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    go(page, path)
    expect(page.get_by_text(there).first).to_be_visible()
    expect(page.get_by_text(away)).to_have_count(0)
    expect(page.get_by_role("navigation").get_by_text("Logs")).to_have_count(0)
    expect(page.locator("[data-live-text]")).to_have_text("Connected")
    assert complaints == []


def test_a_page_for_staff_is_refused_with_the_reason(page: Page) -> None:
    for path in ("/logs", "/providers"):
        go(page, path)
        expect(page.get_by_text("Only staff may do this.")).to_be_visible()
