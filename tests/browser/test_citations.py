"""A citation lands on its lines, however it is opened. Each test looks at where the pane stands."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import PHONE, WIDE, drawn, go, load_again, settled
from tests.browser.citations import (
    FILES,
    QUESTION,
    Cited,
    cited,
    open_wide,
    rows,
    source,
    stands_at,
)
from tests.browser.conftest import OpenPage
from tests.browser.held import held
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, ingested
from tests.stand_ins.openai_scripts import JSON, Script, Step, end, say, search
from tests.stand_ins.openai_scripts import cited as cited_places
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import write_files
from tests.support.served import ingest_into

# Below 1180 px the viewer covers the transcript: nothing opens by itself there.
NARROW = (1100, 800)
WINCH = "src/winch.py"

# The sum of what moved without the reader's doing, since the page opened.
SHIFTS = """window.shifted = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""


def test_a_stored_conversation_opens_without_a_shift(
    open_page: OpenPage, conversation: str
) -> None:
    page = open_page(conversation, script=SHIFTS)
    stands_at(page, cited(rows(page)[0]))
    drawn(page)
    assert page.evaluate("shifted") <= 0.02
    page.get_by_role("button", name="Close source viewer").click()
    load_again(page)
    expect(page.locator("#source")).to_be_hidden()
    drawn(page)
    assert page.evaluate("shifted") <= 0.02


def test_the_answer_cites_all_files(look: OpenPage, conversation: str) -> None:
    page = look(conversation, size=NARROW)
    places = [cited(row) for row in rows(page)]
    assert {place.path for place in places} == set(FILES)
    assert max(place.first for place in places) > 200


def test_each_row_of_the_list_lands_on_its_lines(look: OpenPage, conversation: str) -> None:
    page = open_wide(look, conversation)
    for row in rows(page):
        row.click()
        stands_at(page, cited(row))


def test_a_row_that_is_pressed_gets_its_click_although_the_transcript_follows_its_end(
    look: OpenPage, conversation: str
) -> None:
    page = look(conversation, size=NARROW)
    row = rows(page)[0]
    row.scroll_into_view_if_needed()
    page.locator("#transcript").evaluate("box => (box.scrollTop = box.scrollHeight)")
    expect(page.get_by_role("button", name="Jump to latest")).to_be_hidden()
    row.hover()
    page.mouse.down()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1] - 60})
    drawn(page)
    page.mouse.up()
    stands_at(page, cited(row))


def test_no_button_comes_over_a_row_while_it_is_pressed(look: OpenPage, conversation: str) -> None:
    page = look(conversation, size=NARROW)
    row = rows(page)[0]
    row.hover()
    page.mouse.down()
    page.locator("#transcript").evaluate("box => box.scrollBy(0, -200)")
    drawn(page)
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_hidden()
    page.mouse.up()
    expect(jump).to_be_visible()


def test_each_chip_of_the_answer_lands_on_its_lines(look: OpenPage, conversation: str) -> None:
    page = open_wide(look, conversation)
    for chip in page.locator("#turns a.cite[data-source]").all():
        chip.click()
        stands_at(page, cited(chip))


def test_tabs_and_brackets_land_on_their_lines(look: OpenPage, conversation: str) -> None:
    page = open_wide(look, conversation)
    places = [cited(row) for row in rows(page)]
    rows(page)[0].click()
    stands_at(page, places[0])
    for place in [*places[1:], places[0]]:
        page.keyboard.press("]")
        stands_at(page, place)
    for place in reversed(places):
        page.keyboard.press("[")
        stands_at(page, place)
    for number, place in reversed(list(enumerate(places))):
        page.get_by_role("tab").nth(number).click()
        stands_at(page, place)


def test_back_and_forward_lead_through_what_was_opened(look: OpenPage, conversation: str) -> None:
    page = look(conversation, size=NARROW)
    first, second = rows(page)[:2]
    places = cited(first), cited(second)
    first.click()
    stands_at(page, places[0])
    page.keyboard.press("]")
    stands_at(page, places[1])
    page.go_back()
    stands_at(page, places[0])
    page.go_forward()
    stands_at(page, places[1])
    page.go_back()
    page.go_back()
    expect(page.locator("#source")).to_be_hidden()
    page.go_forward()
    stands_at(page, places[0])


def test_an_open_citation_is_in_the_address_and_survives_a_reload(
    open_page: OpenPage, conversation: str
) -> None:
    page = open_wide(open_page, conversation)
    row = rows(page)[1]
    place = cited(row)
    row.click()
    expect(page).to_have_url(re.compile(f"start={place.first}&end={place.last}"))
    stands_at(page, place)
    load_again(page)
    stands_at(page, place)
    expect(page.get_by_role("tab", selected=True)).to_contain_text(f":{place.first}")
    other = open_page(page.url)
    stands_at(other, place)


def test_closing_takes_the_citation_out_of_the_address(look: OpenPage, conversation: str) -> None:
    page = open_wide(look, conversation)
    rows(page)[0].click()
    expect(page).to_have_url(re.compile("path="))
    page.get_by_role("button", name="Close source viewer").click()
    expect(page.locator("#source")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("path="))
    load_again(page)
    expect(page.locator("#turns > .turn")).to_have_count(1)
    expect(page.locator("#source")).to_be_hidden()


def test_on_a_wide_screen_the_first_citation_opens_by_itself(
    look: OpenPage, conversation: str
) -> None:
    page = look(conversation, size=WIDE)
    stands_at(page, cited(rows(page)[0]))
    expect(page.get_by_role("tab").first).to_have_attribute("aria-selected", "true")
    go(page, "/chat")
    page.get_by_label("Provider").select_option("builtin")
    settled(page)  # its models come into the form that the question ends
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)
    stands_at(page, cited(rows(page)[0]))
    expect(page.get_by_label("Message")).to_be_focused()


def test_on_a_phone_back_closes_the_viewer(look: OpenPage, conversation: str) -> None:
    page = look(conversation, size=PHONE)
    expect(page.locator("#turns > .turn")).to_have_count(1)
    expect(page.locator("#source")).to_be_hidden()
    row = rows(page)[0]
    row.click()
    stands_at(page, cited(row))
    page.go_back()
    expect(page.locator("#source")).to_be_hidden()
    expect(page).to_have_url(re.compile(re.escape(conversation) + "$"))
    expect(page.locator("#turns > .turn")).to_have_count(1)


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_the_viewer_s_own_page_opens_at_the_cited_lines(
    look: OpenPage, harbour: Path, size: tuple[int, int]
) -> None:
    place = Cited("src/tide.py", 241, 242)
    page = look("/ui/retrieval/source?repo=harbour&path=src/tide.py&start=241&end=242", size=size)
    stands_at(page, place)


def test_a_search_hit_opens_at_its_lines(look: OpenPage, harbour: Path) -> None:
    page = look("/search?q=predict+tide+of+harbour")
    link = page.locator(".hit a").first
    place = cited(link, "href")
    link.click()
    stands_at(page, place)


def test_chips_in_a_table_are_whole_and_apart(
    look: OpenPage, harbour: Path, model: OpenAIStandIn
) -> None:
    """A column of chips on a phone is as wide as one of them, and no chip breaks in two. Where
    they stand beside each other, each is easily hit."""

    def table(request: JSON) -> list[Step]:
        places = [
            f"| trims the lamp of the lighthouse in the evening | `{each}` `{each}` |"
            for each in cited_places(request)
        ]
        return [*say("\n".join(["| What it does | Where |", "|---|---|", *places])), *end()]

    model.scripts["plain"] = Script([search, table])
    page = look("/chat", size=PHONE)
    page.get_by_label("Model").select_option("plain")
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)
    chips = page.locator("#turns td a[data-source]")
    expect(chips.nth(5)).to_be_visible()
    assert objections_of_looks(page) == []
    # As in an answer with more than a hundred citations.
    page.locator("#turns td .cite").evaluate_all("all => all.forEach(c => (c.textContent = 128))")
    assert set(chips.evaluate_all("all => all.map(chip => chip.getClientRects().length)")) == {1}


def test_the_viewer_shows_where_cited_lines_are_now(open_page: OpenPage, harbour: Path) -> None:
    file = harbour / "src/tide.py"
    before = file.read_text()
    try:
        file.write_text("# one more line\n" + before)
        viewer = open_page("/ui/retrieval/source?repo=harbour&path=src/tide.py&start=241&end=242")
        expect(viewer.locator(".viewer__head")).to_contain_text("Lines 242–243, moved 1 line")
        expect(viewer.locator(".is-cited").first).to_be_in_viewport()
    finally:
        file.write_text(before)


@contextmanager
def asked_about_winch(product: Product, page: Page) -> Iterator[Path]:
    """A page with an answer that cites src/winch.py of a repository, whose folder it yields."""
    with ingested(product, "quay", {WINCH: source("turn_winch_at_quay")}):
        page.get_by_label("Provider").select_option("builtin")
        settled(page)
        page.get_by_label("Message").fill("turn winch at quay")
        page.get_by_label("Message").press("Enter")
        expect(page.locator("#turns [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)
        yield product.repos / "quay"


def test_the_head_of_an_answer_says_what_still_holds(open_page: OpenPage, product: Product) -> None:
    text = source("turn_winch_at_quay")
    page = open_page("/chat", size=NARROW)
    with asked_about_winch(product, page) as folder:
        head = page.locator(".standing")
        head.scroll_into_view_if_needed()
        expect(head).to_have_text(re.compile(r"^\s*(\d+) citations?, \1 still holds?\s*$"))
        chip = page.locator("#turns a.cite[data-source*=winch]").first
        now = f"{cited(chip).first + 1}"

        ingest_into(product, write_files(folder, {WINCH: "\n" + text}))
        load_again(page)
        head.scroll_into_view_if_needed()
        expect(head).to_contain_text(f"moved to winch.py:{now}")
        expect(chip).to_have_attribute("data-source", re.compile(f"start={now}&"))
        chip.click()
        expect(page.locator("#source .line.is-cited .ln").first).to_have_text(now)
        page.get_by_role("button", name="Close source viewer").click()

        write_files(folder, {WINCH: text.replace("return", "yield")})
        load_again(page)
        head.scroll_into_view_if_needed()
        expect(head).to_contain_text("changed")
        expect(head.get_by_role("button", name="Ask again")).to_be_visible()


def test_a_citation_opens_where_its_lines_are_while_the_head_is_out_of_sight(
    open_page: OpenPage, product: Product
) -> None:
    text = source("turn_winch_at_quay")
    page = open_page("/chat", size=(1300, 420))
    with asked_about_winch(product, page) as folder:
        chip = page.locator("#turns a.cite[data-source*=winch]").last
        was = cited(chip).first

        ingest_into(product, write_files(folder, {WINCH: "\n" + text}))
        load_again(page)  # The answer opens at its end, and its first citation by itself.
        expect(page.locator(".standing")).not_to_be_in_viewport()
        lines = page.locator("#source .line.is-cited .ln")
        expect(lines.first).to_have_text(re.compile(r"\d"))
        chip.click()
        expect(lines.first).to_have_text(f"{was + 1}")

        ingest_into(product, write_files(folder, {WINCH: "\n\n\n" + text}))
        chip.click()
        expect(lines.first).to_have_text(f"{was + 3}")

        ingest_into(product, write_files(folder, {WINCH: text}))
        chip.click()
        expect(lines.first).to_have_text(f"{was}")

        ingest_into(product, write_files(folder, {WINCH: text.replace("return", "yield")}))
        chip.click()
        expect(page.locator("#source [data-cited]")).to_have_text(
            re.compile(r"^Lines .*, changed$")
        )


def test_an_older_look_at_an_answer_does_not_hinder_a_newer_one(
    open_page: OpenPage, product: Product
) -> None:
    text = source("turn_winch_at_quay")
    page = open_page("/chat", size=(1300, 420))
    with asked_about_winch(product, page) as folder:
        chip = page.locator("#turns a.cite[data-source*=winch]").last
        was = cited(chip).first
        settled(page)
        with held(page, "**/ui/chat/standing*", answered=True) as let_it_come:
            chip.click()

        ingest_into(product, write_files(folder, {WINCH: "\n" + text}))
        chip.click()
        let_it_come()
        expect(page.locator("#source .line.is-cited .ln").first).to_have_text(f"{was + 1}")
