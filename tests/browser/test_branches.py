"""Edit and resend, and Regenerate, on the chat page: versions, and the keys that lead to them."""

from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.axe import objections
from tests.browser.chat import ask, done, turn
from tests.browser.chromium import PHONE, go, load_again, new_context
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.stand_ins.openai_server import OpenAIStandIn


def shows(page: Page, *questions: str) -> None:
    expect(page.locator("#turns [data-question]")).to_have_text(list(questions))


def edit(page: Page, number: int, text: str) -> None:
    turn(page, number).locator(".ask").hover()
    turn(page, number).get_by_role("button", name="Edit and resend").click()
    expect(page.get_by_text("You are editing an earlier question.")).to_be_visible()
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_text("You are editing an earlier question.")).to_be_hidden()
    expect(turn(page).locator("[data-question]")).to_have_text(text)
    done(page)


def test_an_edited_question_is_a_version_in_every_tab(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    for text in ("First?", "Second?"):
        ask(page, text, model="plain")
        done(page)
    other = open_page("/chat")
    go(other, page.url)
    edit(page, 1, "Second, edited?")
    for tab in (page, other):
        shows(tab, "First?", "Second, edited?")
        done(tab)
        expect(turn(tab).get_by_role("group", name="Versions of the question")).to_contain_text(
            "2/2"
        )
    assert objections(page) == []
    page.get_by_role("button", name="Previous question").press("Enter")
    for tab in (page, other):
        shows(tab, "First?", "Second?")
    expect(page.get_by_role("button", name="Next question")).to_be_focused()
    load_again(page)
    shows(page, "First?", "Second?")
    ask(page, "Third?", model="plain")
    done(page)
    edit(page, 0, "Anew?")
    shows(page, "Anew?")
    page.get_by_role("button", name="Previous question").click()
    shows(page, "First?", "Second?", "Third?")


def test_another_answer_is_a_version_on_a_phone_and_a_search_leads_to_it(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat", size=PHONE)
    ask(page, "A pelagic question?", model="plain")
    done(page)
    first = turn(page).get_attribute("data-turn") or ""
    page.get_by_label("Message").fill("A draft")
    versions = page.get_by_role("group", name="Versions of the answer")
    sent: list[str] = []

    def after_the_answer(route: Route) -> None:
        sent.append(route.request.post_data or "")
        answer = route.fetch()
        expect(versions).to_contain_text("2/2")
        route.fulfill(response=answer)

    page.route("**/ui/chat/send", after_the_answer)
    turn(page).get_by_role("button", name="Regenerate").dblclick()
    expect(versions).to_contain_text("2/2")
    expect(page.locator("#turns > .turn")).to_have_count(1)
    expect(page.get_by_label("Message")).to_have_value("A draft")
    expect(turn(page)).not_to_have_attribute("data-turn", first)
    done(page)
    expect(page.locator("form.htmx-request")).to_have_count(0)
    assert len(sent) == 1
    page.get_by_role("button", name="Previous answer").click()
    expect(versions).to_contain_text("1/2")
    expect(turn(page)).to_have_attribute("data-turn", first)
    address = page.url
    page.get_by_role("button", name="Next answer").click()
    expect(versions).to_contain_text("2/2")
    go(page, f"{address}&turn={first}")
    expect(versions).to_contain_text("1/2")
    expect(page).to_have_url(address)


def test_a_finger_finds_the_button_that_edits(
    browser: Browser, product: Product, stand_in: OpenAIStandIn
) -> None:
    context = new_context(browser, product.url, has_touch=True, is_mobile=True)
    page = context.new_page()
    go(page, "/chat")
    ask(page, "First?", model="plain")
    done(page)
    button = turn(page).get_by_role("button", name="Edit and resend")
    expect(button).to_have_css("opacity", "1")
    context.close()


def test_escape_ends_an_edit_and_brings_the_draft_back(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, "First?", model="plain")
    done(page)
    message = page.get_by_label("Message")
    message.fill("A draft")
    turn(page).locator(".ask").hover()
    turn(page).get_by_role("button", name="Edit and resend").click()
    expect(message).to_have_value("First?")
    message.press("Escape")
    expect(message).to_have_value("A draft")
    expect(page.get_by_text("You are editing an earlier question.")).to_be_hidden()


def test_an_edit_that_is_begun_before_the_last_request_ends_is_kept(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    message, note = page.get_by_label("Message"), page.get_by_text("You are editing an earlier")

    def edit_meanwhile(route: Route) -> None:
        answer = route.fetch()
        done(page)
        turn(page).locator(".ask").hover()
        turn(page).get_by_role("button", name="Edit and resend").click()
        message.fill("Edited?")
        route.fulfill(response=answer)

    page.route("**/ui/chat/send", edit_meanwhile, times=1)
    ask(page, "First?", model="plain")
    expect(message).to_have_value("Edited?")
    expect(page.locator("form.htmx-request")).to_have_count(0)
    expect(note).to_be_visible()
    message.press("Enter")
    shows(page, "Edited?")
    expect(note).to_be_hidden()
    expect(message).to_have_value("")


def test_a_stopped_question_comes_back_and_not_one_that_was_not_sent(
    open_page: OpenPage, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    message = page.get_by_label("Message")
    model.hold()

    def send_another(route: Route) -> None:
        message.fill("Another?")
        message.press("Enter")  # waits for the request, and then the answer is running
        answer = route.fetch()
        expect(turn(page)).to_be_visible()
        route.fulfill(response=answer)

    page.route("**/ui/chat/send", send_another, times=1)
    ask(page, "First?", model="plain")
    expect(page.locator("form.htmx-request")).to_have_count(0)
    expect(message).to_have_value("Another?")
    message.fill("")
    page.get_by_role("button", name="Stop").click()
    expect(message).to_have_value("First?")
