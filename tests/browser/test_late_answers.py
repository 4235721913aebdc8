"""What a person does while an answer is on its way is not undone by it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Locator, Page, expect

from tests.browser.chat import QUESTION, ask, ask_and_hold, done
from tests.browser.chromium import Complaints, load_again, settled
from tests.browser.conftest import OpenPage
from tests.browser.conversations import only_listed
from tests.browser.held import held
from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import write_files


@pytest.fixture
def chat(open_page: OpenPage) -> Iterator[Page]:
    """The chat page, its list narrowed to two conversations of this test."""
    page = open_page("/chat")
    with only_listed(page, "Late one", "Late two"):
        yield page


# The answer to what was pressed last is shown


def test_a_menu_is_of_the_conversation_that_was_pressed_last(chat: Page) -> None:
    with held(chat, "**/ui/chat/actions*") as let_it_come:
        chat.get_by_role("button", name="Actions for Late one").click()
    chat.get_by_role("button", name="Actions for Late two").click()
    let_it_come()
    chat.locator("#convo-menu").get_by_role("button", name="Rename").click()
    expect(chat.get_by_label("Title")).to_have_value("Late two")


def test_the_panel_is_of_the_name_that_was_clicked_last(open_page: OpenPage, harbour: Path) -> None:
    page = open_page("/code/harbour/src/crane.py")
    panel = page.locator("#names")
    with held(page, "**/ui/code/name?name=filler_0*") as let_the_first_come:
        page.locator(".viewer__code").get_by_text("filler_0").click()
    page.keyboard.press("Escape")
    with held(page, "**/ui/code/name?name=filler_1*") as let_the_second_come:
        page.locator(".viewer__code").get_by_text("filler_1", exact=True).click()
    expect(panel).to_have_attribute("aria-busy", "true")
    let_the_first_come()
    expect(panel).to_contain_text("Looking…")
    let_the_second_come()
    expect(panel.get_by_role("heading", name="filler_1", exact=True)).to_be_visible()
    expect(panel).not_to_have_attribute("aria-busy", "true")
    expect(panel).not_to_contain_text("Looking…")


def test_previews_that_are_left_out_are_no_errors(open_page: OpenPage, harbour: Path) -> None:
    page = open_page("/search?q=filler", size=(1600, 900))
    rows = page.locator("[data-preview]")
    with held(page, "**/ui/retrieval/source*") as let_it_come:
        rows.nth(1).locator("[data-row-focus]").focus()
    rows.nth(2).locator("[data-row-focus]").focus()
    let_it_come()
    expect(page.locator("#source-body .is-cited, #source-body .is-near").first).to_be_visible()


def test_completion_goes_on_after_a_request_that_failed(
    open_page: OpenPage, harbour: Path, complaints: Complaints
) -> None:
    complaints.expected += ["ERR_FAILED", "htmx:sendError"]
    page = open_page("/chat")
    page.route("**/ui/chat/scope*", lambda route: route.abort(), times=1)
    page.get_by_label("Message").press_sequentially("@h")
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    page.get_by_label("Message").press_sequentially("a")
    expect(page.get_by_role("option", name="harbour", exact=True)).to_be_visible()


def test_the_drawer_is_of_the_row_that_was_pressed_last_and_leads_back_to_it(
    open_page: OpenPage, harbour: Path, repository: str
) -> None:
    page = open_page("/ingest")
    drawer = page.locator("#drawer")
    other, details = (
        page.locator(f"[data-row^={name}]").get_by_role("button", name="Details")
        for name in ("harbour", "lighthouse")
    )
    with held(page, "**/ui/ingest/root/*") as let_it_come:
        other.click()
    with held(page, "**/ui/ingest/root/*") as let_the_second_come:
        details.click()
    let_it_come()
    with page.expect_response("**/ui/ingest/models*"):
        page.get_by_role("button", name="Refresh models").evaluate("button => button.click()")
    let_the_second_come()
    expect(drawer.get_by_role("heading", name="lighthouse", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(details).to_be_focused()


def test_the_setup_is_of_the_client_that_was_pressed_last(open_page: OpenPage) -> None:
    page = open_page("/connect")
    clients = page.get_by_role("navigation", name="Client").get_by_role("link")
    with held(page, "**/connect?*") as let_it_come:
        clients.nth(1).click()
    clients.nth(2).click()
    expect(clients.nth(2)).to_have_attribute("aria-current", "true")
    address = page.url
    let_it_come()
    page.evaluate("fetch('/version')")  # so that it would be here
    expect(clients.nth(2)).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(address)


def test_the_state_of_an_endpoint_comes_though_a_client_did_not(
    open_page: OpenPage, complaints: Complaints
) -> None:
    complaints.expected += ["ERR_FAILED", "htmx:sendError"]
    page = open_page("/connect")
    clients = page.get_by_role("navigation", name="Client").get_by_role("link")
    with held(page, "**/ui/site/question") as let_it_come:
        clients.nth(1).click()
    page.route("**/connect?*", lambda route: route.abort(), times=1)
    clients.nth(2).click()
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    let_it_come()
    expect(page.get_by_text("Asking…")).to_have_count(0)


def test_a_reembed_is_answered_though_another_preview_is_open(
    open_page: OpenPage, product: Product
) -> None:
    files = {f"src/{name}.py": f"def reef_{name}():\n    return reef\n" for name in ("one", "two")}
    with ingested(product, "reef", files):
        write_files(product.repos / "reef", dict.fromkeys(files, "gone = 1\n"))
        page = open_page("/search?repository=reef&q=reef", size=(1600, 900))
        with held(page, "**/ui/ingest/reembed") as let_it_come:
            page.locator("#source-body").get_by_role("button", name="Re-embed").click()
        page.locator("[data-preview]").nth(1).locator("[data-row-focus]").focus()
        let_it_come()
        expect(page.get_by_text("Re-embed started")).to_be_visible()


@pytest.mark.usefixtures("stand_in")
def test_the_models_are_those_of_the_provider_that_was_chosen_last(open_page: OpenPage) -> None:
    page = open_page("/chat?provider=builtin")
    provider = page.get_by_label("Provider")
    with held(page, "**/ui/chat/picker*") as let_it_come:
        provider.select_option("openai")
    with page.expect_response(re.compile("/ui/chat/picker.*provider=builtin")):
        provider.select_option("builtin")
        let_it_come()
    settled(page)
    expect(provider).to_have_value("builtin")
    expect(page.get_by_label("Model")).to_have_value("search")


@pytest.mark.usefixtures("stand_in")
def test_the_rating_is_the_one_that_was_pressed_last(open_page: OpenPage) -> None:
    page = open_page("/chat")
    ask(page, "First?", model="plain")
    done(page)
    good, bad = (page.get_by_role("button", name=f"{word} answer") for word in ("Good", "Bad"))
    with held(page, "**/ui/chat/rate") as let_it_come:
        good.click()
    bad.click()
    let_it_come()
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")


# What is typed and chosen meanwhile stays


def tag_on_its_way(chat: Page) -> tuple[Locator, Callable[[], None]]:
    """The field of a tag that was sent, and what lets its answer come."""
    chat.get_by_role("button", name="Actions for Late one").click()
    chat.locator("#convo-menu").get_by_text("Tags…").click()
    field = chat.get_by_label("Add a tag")
    field.fill("first")
    with held(chat, "**/ui/chat/tag") as let_it_come:
        field.press("Enter")
    return field, let_it_come


def test_a_tag_that_is_typed_while_another_is_added_stays(chat: Page) -> None:
    field, let_it_come = tag_on_its_way(chat)
    field.fill("second")
    field.press("ArrowLeft")
    let_it_come()
    expect(chat.get_by_role("list", name="Tags")).to_contain_text("first")
    expect(field).to_be_focused()
    field.press("1")
    expect(field).to_have_value("secon1d")
    # What a stream brings next is no answer to the tag.
    chat.evaluate("document.dispatchEvent(new CustomEvent('htmx:afterSwap', { detail: {} }))")
    expect(field).to_have_value("secon1d")


def test_what_is_typed_right_after_a_tag_is_the_next_one(chat: Page) -> None:
    field, let_it_come = tag_on_its_way(chat)
    field.press_sequentially("secnd")
    for key in ("ArrowLeft", "ArrowLeft"):
        field.press(key)
    let_it_come()
    expect(chat.get_by_role("list", name="Tags")).to_contain_text("first")
    field.press("o")
    expect(field).to_have_value("second")


@pytest.mark.usefixtures("stand_in")
def test_what_is_typed_right_after_a_question_is_the_next_one(open_page: OpenPage) -> None:
    page = open_page("/chat")
    page.get_by_label("Model").select_option("plain")
    message = page.get_by_label("Message")
    message.fill("First?")
    with held(page, "**/ui/chat/send") as let_it_come:
        message.press("Enter")
    message.press_sequentially("Second?")
    let_it_come()
    done(page)
    expect(message).to_have_value("Second?")
    load_again(page)
    expect(message).to_have_value("Second?")


@pytest.mark.usefixtures("stand_in")
def test_models_that_come_after_a_question_was_sent_are_left_out(open_page: OpenPage) -> None:
    page = open_page("/chat?provider=openai")
    page.get_by_label("Model").select_option("plain")
    with held(page, "**/ui/chat/send") as let_it_come:
        page.get_by_label("Message").fill("First?")
        page.get_by_label("Message").press("Enter")
    with held(page, "**/ui/chat/picker*") as let_the_models_come:
        page.get_by_label("Provider").select_option("builtin")
    let_it_come()
    done(page)
    expect(page.get_by_label("Provider")).to_be_disabled()
    with page.expect_response("**/ui/chat/picker*"):
        let_the_models_come()
    expect(page.get_by_label("Model")).to_have_value("plain")


@pytest.mark.usefixtures("stand_in")
def test_a_model_that_is_chosen_while_a_question_is_sent_stays(open_page: OpenPage) -> None:
    page = open_page("/chat?provider=openai")
    model = page.get_by_label("Model")
    with held(page, "**/ui/chat/send") as let_it_come:
        model.select_option("plain")
        page.get_by_label("Message").fill("First?")
        page.get_by_label("Message").press("Enter")
    model.select_option("slow-tool")
    let_it_come()
    done(page)
    expect(page.get_by_label("Provider")).to_be_disabled()
    expect(model).to_have_value("slow-tool")


def test_filters_that_are_set_while_a_search_moves_others_to_their_fields_stay(
    open_page: OpenPage, harbour: Path
) -> None:
    page = open_page("/search")
    with held(page, "**/search?*") as let_it_come:
        page.get_by_label("Search code").fill("filler lang:python")
        page.get_by_label("Search code").press("Enter")
    page.get_by_label("Path begins with").fill("src/")
    page.get_by_label("Show on a page").select_option("20")
    let_it_come()
    expect(page).to_have_url(re.compile("language=python&path=src%2F&limit=20"))
    expect(page.get_by_label("Path begins with")).to_have_value("src/")
    expect(page.get_by_label("Show on a page")).to_have_value("20")


def test_what_is_typed_while_an_ingest_starts_stays(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    page.get_by_label("Folder path").fill("/nowhere/at/all")
    with held(page, "**/ui/ingest/start") as let_it_come:
        page.get_by_role("button", name="Start ingest").click()
    page.get_by_label("Description").fill("Meanwhile")
    page.get_by_label("Dry run").check()
    let_it_come()
    expect(page.get_by_label("Folder path")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Description")).to_have_value("Meanwhile")
    expect(page.get_by_label("Dry run")).to_be_checked()


def test_the_title_that_is_typed_while_another_is_saved_stays(chat: Page) -> None:
    for name in ("Late one", "Late two"):
        chat.get_by_role("button", name=f"Actions for {name}").click()
        chat.locator("#convo-menu").get_by_role("button", name="Rename").click()
        chat.get_by_label("Title").fill(f"{name}, renamed")
        if name == "Late one":
            with held(chat, "**/ui/chat/rename") as let_it_come:
                chat.get_by_label("Title").press("Enter")
            chat.keyboard.press("Escape")
    let_it_come()
    expect(chat.locator("#convos")).to_contain_text("Late one, renamed")
    expect(chat.get_by_label("Title")).to_have_value("Late two, renamed")
    chat.get_by_label("Title").press("Enter")
    expect(chat.locator("#convos")).to_contain_text("Late two, renamed")
    expect(chat.get_by_role("dialog")).to_have_count(0)


def test_the_code_of_a_login_stays_selected_until_there_is_news(open_page: OpenPage) -> None:
    login = {"state": "waiting", "url": "https://example.org", "code": "ABCD"}
    setup = {"available": False, "installed": True, "login": login}
    page = open_page("/providers")
    page.route(
        "**/ui/chat/codex",
        lambda route: route.fulfill(
            body=render_to_string("conversations/_codex.html", {"setup": setup})
        ),
    )
    page.get_by_role("button", name="Set up Codex").click()
    page.get_by_text("ABCD").select_text()
    for _ in range(2):
        with page.expect_response("**/ui/chat/codex"):
            pass
    assert page.evaluate("getSelection().toString()") == "ABCD"
    setup["available"] = True
    expect(page.get_by_text("Codex is ready.")).to_be_visible()


def test_selected_text_of_an_answer_stays_selected_when_that_ends(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask_and_hold(page, model)
    page.locator("#turns p", has_text="Sentence 1 of a slow answer.").evaluate("""paragraph => {
      const text = [...paragraph.childNodes].find((node) => node.data?.includes("Sentence 1 of"));
      const start = text.data.indexOf("Sentence 1");
      getSelection().setBaseAndExtent(text, start, text, start + 10);
    }""")
    assert page.evaluate("getSelection().toString()") == "Sentence 1"
    model.release()
    done(page)
    assert page.evaluate("getSelection().toString()") == "Sentence 1"


@pytest.mark.usefixtures("stand_in")
def test_a_question_waits_for_the_models_of_its_provider(open_page: OpenPage) -> None:
    page = open_page("/chat?provider=builtin")
    with held(page, "**/ui/chat/picker*") as let_it_come:
        page.get_by_label("Provider").select_option("openai")
    page.get_by_label("Message").fill("First?")
    page.get_by_label("Message").press("Enter")
    let_it_come()
    done(page)
    expect(page.get_by_label("Model")).to_have_value("plain")


def test_a_question_that_is_stopped_before_its_sending_is_answered_comes_back(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    with held(page, "**/ui/chat/send", answered=True) as let_it_come:
        ask_and_hold(page, model)
    page.get_by_role("button", name="Stop").click()
    done(page, "Stopped")
    let_it_come()
    expect(page.locator("#more-actions")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value(QUESTION)


def test_a_stopped_question_comes_back_after_the_button_is_gone(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask_and_hold(page, model)
    expect(page.get_by_label("Message")).to_have_value("")
    with held(page, "**/ui/chat/stop", answered=True) as let_it_come:
        page.get_by_role("button", name="Stop").click()
    done(page, "Stopped")
    expect(page.locator("#send")).to_be_visible()
    let_it_come()
    expect(page.get_by_label("Message")).to_have_value(QUESTION)
