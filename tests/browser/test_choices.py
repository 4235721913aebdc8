"""What is chosen on the chat page is shown, and kept for the next conversation."""

import re

from playwright.sync_api import expect

from tests.browser.chromium import Complaints
from tests.browser.conftest import OpenPage
from tests.browser.product import Product


def test_a_new_conversation_keeps_the_provider_and_the_model(open_page: OpenPage) -> None:
    page = open_page("/chat?provider=openai")
    page.get_by_label("Model").select_option("slow-tool")
    page.get_by_role("link", name="New conversation").click()
    expect(page).to_have_url(re.compile("model=slow-tool"))
    expect(page.get_by_label("Provider")).to_have_value("openai")
    expect(page.get_by_label("Model")).to_have_value("slow-tool")
    page.get_by_label("Provider").select_option("builtin")
    expect(page.get_by_label("Model")).to_have_value("search")
    page.get_by_role("link", name="New conversation").click()
    expect(page).to_have_url(re.compile("provider=builtin&model=search"))
    expect(page.get_by_label("Provider")).to_have_value("builtin")


def test_the_collapsed_line_of_the_codex_flags_shows_the_choice(
    open_page: OpenPage,
) -> None:
    page = open_page("/chat?provider=codex")
    flags = page.locator("details.flags")
    line = flags.locator("summary")
    expect(line).to_contain_text("Workspace write · On failure · High")
    line.click()
    flags.get_by_label("Sandbox mode").select_option("read-only")
    flags.get_by_label("Enable web search").check()
    line.click()
    expect(line).to_contain_text("Read-only · On failure · High · web search")


def test_while_the_database_is_away_an_open_page_archives_nothing(
    open_page: OpenPage, product: Product, complaints: Complaints
) -> None:
    page = open_page("/chat")
    choosing = page.get_by_role("button", name="Select conversations")
    expect(choosing).to_be_enabled()
    database = product.data / "codeinfo.sqlite3"
    names = [database, *database.parent.glob("codeinfo.sqlite3-*")]
    for each in names:
        each.rename(each.with_suffix(f"{each.suffix}.away"))
    try:
        expect(choosing).to_be_disabled()
        bar = page.get_by_role("form", name="Bulk actions", include_hidden=True)
        archive = bar.get_by_role("button", name="Archive selected", include_hidden=True)
        expect(archive).to_be_disabled()
        expect(page.get_by_text("Conversation history unavailable")).to_be_visible()
    finally:
        for each in names:
            each.with_suffix(f"{each.suffix}.away").rename(each)
    expect(choosing).to_be_enabled()
