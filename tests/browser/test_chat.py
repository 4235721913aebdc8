"""The chat page in a browser: asking, following, stopping, coming back, opening what is cited."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import QUESTION, ask, ask_and_hold, chip, done, turn, turns
from tests.browser.chromium import PHONE, Complaints, clipboard, drawn, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.repository import LONG_WAIT
from tests.stand_ins.openai_scripts import (
    Script,
    end,
    say,
)
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE
from tests.support.waiting import wait_until

# Closes the sockets of a page, and ends when the page says that it has noticed.
CLOSED = """() => new Promise((done) => {
  const page = document.documentElement;
  new MutationObserver(() => page.dataset.live === "closed" && done())
    .observe(page, { attributes: true });
  sockets.forEach((socket) => socket.close());
})"""
# How many pixels of a box are below what it shows.
BELOW = "box => box.scrollHeight - box.scrollTop - box.clientHeight"


def at_end(page: Page) -> None:
    """The transcript comes to show its end; the content grows first, then the page follows it."""
    wait_until(lambda: page.locator("#transcript").evaluate(BELOW) <= 64)


def test_a_question_is_answered_live_with_steps_and_citations(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    model.hold()
    model.step(100)  # of some 190 frames: a few sentences
    ask(page)
    expect(chip(page)).to_have_text("Processing")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/chat\?c=[\w-]{36}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
    expect(turn(page).get_by_text("Thought process")).to_be_visible()
    expect(turn(page)).to_contain_text("Sentence 2 of a slow answer.", timeout=LONG_WAIT)
    expect(chip(page)).to_have_text("Processing")
    model.release()
    done(page)
    expect(page.get_by_role("button", name=re.compile("^Send"))).to_be_visible()
    for leaked in ("<think>", "</think>"):
        expect(turn(page)).not_to_contain_text(leaked)
    expect(turn(page).locator("details.step").first).not_to_have_attribute("open", "")
    expect(turn(page).get_by_text(re.compile(r"^Citations \(\d\)"))).to_be_visible()
    expect(turn(page).locator(".prose .cite").first).to_have_text("1")


def test_tool_details_show_parameters_and_distances(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, model="tool")
    done(page)
    step = turn(page).locator(".step", has_text="VectorSearch")
    step.locator("summary").first.click()
    distance = step.get_by_text(re.compile(r"^Distance: \d\.\d{3}$")).first
    expect(distance).to_be_visible()
    expect(step.get_by_text(re.compile(r"^Best distance: \d\.\d{3}$")).first).to_be_visible()
    step.get_by_text("Parameters").click()
    expect(step.locator(".json").first).to_contain_text(f'"query": "{QUESTION}"')
    step.locator(".tmatch").first.click()
    expect(page.locator("#source .line.is-cited").first).to_be_visible()


def test_a_citation_opens_its_lines_and_escape_leads_back(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, model="tool")
    done(page)
    chips = turn(page).locator(".prose a.cite")
    label = chips.first.get_attribute("aria-label") or ""
    found = re.fullmatch(r"Source 1: (\S+) lines? (\d+)(?: to (\d+))?", label)
    assert found
    chips.first.click()
    viewer = page.get_by_role("complementary", name="Source viewer")
    expect(viewer.locator(".viewer__head")).to_contain_text(found[1])
    first, last = int(found[2]), int(found[3] or found[2])
    expect(viewer.locator(".line.is-cited")).to_have_count(last - first + 1)
    expect(viewer.locator(f"[name=L{first}]")).to_be_in_viewport()
    expect(viewer.locator(".viewer__code")).to_be_focused()
    path = next(name for name in SAMPLE if name.endswith(found[1]))
    lines = SAMPLE[path].split("\n")[first - 1 : last]
    shown = [text.rstrip("\n") for text in viewer.locator(".is-cited").all_text_contents()]
    assert [re.sub(r"^1?\d+", "", text, count=1) for text in shown[1:]] == lines[1:]
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    expect(chips.first).to_be_focused()
    load_again(page)
    expect(chips.first).to_have_attribute("aria-label", label)


def test_stop_keeps_the_answer_and_brings_the_question_back(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask_and_hold(page, model)
    page.get_by_role("button", name="Stop").click()
    done(page, "Stopped")
    expect(turn(page)).to_contain_text("Sentence 1 of a slow answer.")
    expect(page.get_by_label("Message")).to_have_value(QUESTION)
    expect(page.get_by_label("Message")).to_be_focused()
    expect(page.get_by_role("button", name=re.compile("^Send"))).to_be_visible()


def test_escape_stops(open_page: OpenPage, repository: str, model: OpenAIStandIn) -> None:
    page = open_page("/chat")
    model.hold()
    model.step(10)
    ask(page, model="slow")
    expect(turn(page)).to_contain_text("word2")
    page.keyboard.press("Escape")
    done(page, "Stopped")


@pytest.mark.fault("The reader leaves or reloads")
def test_a_reload_in_mid_answer_loses_and_doubles_nothing(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask_and_hold(page, model)
    expect(page).to_have_url(re.compile(r"\?c="))
    load_again(page)
    expect(chip(page)).to_have_text("Processing")
    model.release()
    done(page)
    expect(page.locator("#turns > .turn")).to_have_count(1)
    text = turn(page).locator(".answer").last.inner_text()
    assert re.findall(r"Sentence (\d+) of", text) == [str(n) for n in range(1, 26)]
    live = turns(page)
    load_again(page)
    assert turns(page) == live


@pytest.mark.fault("The reader leaves or reloads")
def test_a_second_tab_sees_the_same_and_may_stop_it(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask_and_hold(page, model)
    expect(page).to_have_url(re.compile(r"\?c="))
    other = page.context.new_page()
    go(other, page.url)
    expect(turn(other)).to_contain_text("Sentence 1 of a slow answer.", timeout=LONG_WAIT)
    other.get_by_role("button", name="Stop").click()
    done(page, "Stopped")
    done(other, "Stopped")
    assert turns(page) == turns(other)
    model.release()
    ask(other, "And then?", model="plain")
    expect(page.locator("#turns > .turn")).to_have_count(2)
    done(page)


def test_a_socket_that_breaks_is_mended_without_a_trace(
    open_page: OpenPage, repository: str, model: OpenAIStandIn, complaints: Complaints
) -> None:
    complaints.expected.append("WebSocket connection to")
    keep = """
      const Native = WebSocket; window.sockets = [];
      window.WebSocket = class extends Native {
        constructor(...given) { super(...given); window.sockets.push(this); }
      };"""
    page = open_page("/chat", script=keep)
    ask_and_hold(page, model)
    page.evaluate(CLOSED)
    expect(page.locator("html")).to_have_attribute("data-live", "open", timeout=LONG_WAIT)
    model.release()
    done(page)
    text = turn(page).locator(".answer").last.inner_text()
    assert re.findall(r"Sentence (\d+) of", text) == [str(n) for n in range(1, 26)]
    expect(page.locator("#turns > .turn")).to_have_count(1)


@pytest.mark.fault("The model server fails")
def test_a_cut_keeps_the_answer_says_why_and_offers_another_try(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    page.get_by_label("Model").select_option("cut-middle")
    ask(page, model="cut-middle")
    done(page, "Failed")
    expect(turn(page)).to_contain_text("Half an ans")
    expect(turn(page).get_by_role("alert")).to_contain_text("PROVIDER_ERROR")
    page.get_by_label("Model").select_option("plain")
    turn(page).get_by_role("button", name="Try again").click()
    expect(turn(page)).to_contain_text("Hello, this is a plain answer.")
    done(page)
    page.get_by_role("button", name="Previous answer").click()
    expect(turn(page)).to_contain_text("Half an ans")


def test_sections_that_the_reader_opened_stay_open(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat", size=(1000, 520))
    ask_and_hold(page, model)
    thought = turn(page).locator("details.step", has_text="Thought process")
    thought.locator("summary").click()
    expect(thought).to_contain_text("I should look this up first.")
    model.release()
    done(page)
    expect(thought).to_have_attribute("open", "")


def test_search_only_answers_with_quoted_and_cited_passages(
    open_page: OpenPage, repository: str
) -> None:
    page = open_page("/chat")
    page.get_by_label("Provider").select_option("builtin")
    expect(page.get_by_label("Model")).to_have_value("search")
    ask(page, "backoff_delay", model="search")
    done(page)
    snippets = turn(page).locator(".snippet")
    expect(snippets.first).to_be_visible()
    for snippet in snippets.all():
        path = (
            (snippet.locator(".path").text_content() or "")
            .split(":")[0]
            .removeprefix("lighthouse/")
        )
        numbers = [int(n) for n in snippet.locator(".ln").all_text_contents()]
        lines = SAMPLE[path].split("\n")[numbers[0] - 1 : numbers[-1]]
        quoted = snippet.locator(".line").evaluate_all(
            "all => all.map(line => line.textContent.replace(/\\n$/, '').replace(/^\\d+/, ''))"
        )
        assert [line.strip() for line in quoted] == [line.strip() for line in lines]
    expect(page.get_by_label("Provider")).to_be_disabled()


ATTACK = (
    "<script>window.ran = 1</script> <img src=x onerror='window.ran = 2'> "
    "[link](javascript:window.ran=3) ![i](https://example.org/x.png)\n\n"
    "```mermaid\nflowchart LR\n  A[\"<img src=x onerror='window.ran=4'>\"] --> B\n"
    '  click A href "javascript:window.ran=5"\n```\n\n'
    "<svg onload='window.ran = 6'></svg>\n"
)


@pytest.mark.fault("Markup in answers and names")
def test_nothing_that_a_model_or_a_user_writes_runs(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    model.scripts["plain"] = Script([[*say(f"<think>{ATTACK}</think>{ATTACK}"), *end()]])
    page = open_page("/chat")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    ask(page, ATTACK, model="plain")
    done(page)
    expect(turn(page).locator(".diagram__img").first).to_be_attached(timeout=LONG_WAIT)
    load_again(page)
    expect(turn(page).locator(".diagram__img").first).to_be_attached()
    assert page.evaluate("window.ran") is None
    assert not [url for url in requests if "example.org" in url]
    # The conversation's title and its menu are the attack too.
    page.locator("[data-convo-menu]").first.click()
    expect(page.locator("#convo-menu")).to_be_visible()
    assert page.evaluate("window.ran") is None


def test_a_menu_follows_its_button_when_the_window_changes(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, "A question with a menu", model="plain")
    done(page)
    page.locator(".topbar [data-convo-menu]").click()
    menu = page.locator("#convo-menu")
    expect(menu).to_be_visible()
    page.set_viewport_size({"width": 1600, "height": 900})
    # Its right edge is at that of the window, as the button is.
    wait_until(lambda: menu.evaluate("box => box.getBoundingClientRect().right") > 1500)


def test_conversations_are_found_renamed_archived_and_deleted(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, "A question to be renamed", model="plain")
    done(page)
    page.keyboard.press("F2")
    page.get_by_label("Title").fill("Nutmeg")
    page.get_by_role("button", name="Rename conversation").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nutmeg")
    page.get_by_label("Search conversations").fill("nutm")
    rows = page.locator("#convos .convo")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Nutmeg")
    page.get_by_role("button", name="Actions for Nutmeg").click()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("This conversation is archived.")).to_be_visible()
    page.get_by_label("State").select_option("archived")
    page.get_by_role("button", name="Actions for Nutmeg").click()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete conversation").click()
    # A new conversation keeps provider and model.
    expect(page).to_have_url(re.compile(r"/chat(\?provider=.*)?$"))
    page.get_by_label("State").select_option("all")
    page.get_by_label("Search conversations").fill("nutm")
    expect(page.locator("#convos .convo")).to_have_count(0)


def test_the_draft_survives_a_reload_and_shift_enter_makes_a_line(
    open_page: OpenPage, repository: str
) -> None:
    page = open_page("/chat?c=draft-test")
    message = page.get_by_label("Message")
    message.press_sequentially("one")
    message.press("Shift+Enter")
    message.press_sequentially("two")
    expect(message).to_have_value("one\ntwo")
    load_again(page)
    expect(message).to_have_value("one\ntwo")
    expect(page.locator("#turns > .turn")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_all_of_it_without_going_sideways(
    open_page: OpenPage, repository: str, model: OpenAIStandIn, dark: bool
) -> None:
    page = open_page("/chat", size=PHONE, dark=dark)
    ask(page, model="tool")
    done(page)
    turn(page).locator(".step", has_text="VectorSearch").locator("summary").first.click()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    turn(page).locator(".prose a.cite").first.click()
    viewer = page.locator("#source")
    expect(viewer.locator(".is-cited").first).to_be_in_viewport()
    expect(viewer).to_have_css("width", f"{PHONE[0]}px")
    page.get_by_role("button", name="Close source viewer").click()
    expect(viewer).to_be_hidden()
    page.get_by_role("link", name="Open menu").click()
    expect(page.locator("#convos .convo").first).to_be_visible()


def test_a_long_answer_waits_at_its_place_for_a_reader_who_scrolled_away(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    text = [f"Paragraph {n} of many.\n\n" for n in range(60)]
    model.scripts["plain"] = Script([[*(say(each, 99)[0] for each in text), *end()]])
    # On a fast machine all of it comes in the first second.
    page = open_page("/chat", size=(1000, 600), script="performance.now = () => 0")
    model.hold()
    ask(page, model="plain")
    # Few at once: an answer that comes in one go is shown from its beginning.
    for last in range(4, 30, 5):
        model.step(5)
        expect(turn(page)).to_contain_text(f"Paragraph {last} of many.", timeout=LONG_WAIT)
    transcript = page.locator("#transcript")
    at_end(page)
    transcript.evaluate("box => box.scrollTop = 100")
    model.step(10)
    expect(turn(page)).to_contain_text("Paragraph 39 of many.", timeout=LONG_WAIT)
    drawn(page)
    assert transcript.evaluate("box => box.scrollTop") == 100
    page.get_by_role("button", name="Jump to latest").click()
    model.release()
    done(page)
    at_end(page)


def test_code_and_answers_are_copied_and_keys_walk_the_citations(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    code = "def f():\n    return 1"
    model.scripts["plain"] = Script([[*say(f"Look:\n\n```python\n{code}\n```\n"), *end()]])
    page = open_page("/chat")
    ask(page, model="plain")
    done(page)
    turn(page).get_by_role("button", name="Copy code").click()
    expect(page.get_by_text("Copied").first).to_be_visible()
    wait_until(lambda: clipboard(page) == code)
    turn(page).get_by_role("button", name="Copy answer").click()
    wait_until(lambda: clipboard(page).startswith("Look:\n\n```python"))
    ask(page, model="tool")
    done(page)
    page.locator("#transcript").focus()
    page.keyboard.press("]")
    tabs = page.get_by_role("tab")
    expect(tabs.first).to_have_attribute("aria-selected", "true")
    expect(page.locator("#source .viewer__code")).to_be_focused()
    page.keyboard.press("[")
    expect(tabs.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("\\")
    expect(page.locator("#source")).to_be_hidden()
