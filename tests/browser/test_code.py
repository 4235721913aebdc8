"""The code browser, and a click on a name wherever code is shown."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import PHONE, WIDE, Complaints, clipboard, go, load_again, settled
from tests.browser.citations import cited as citation_of
from tests.browser.citations import open_wide, rows, stands_at
from tests.browser.code_lines import line, panel, place_of
from tests.browser.conftest import OpenPage
from tests.browser.lantern import LONG, LONG_FILE
from tests.browser.narrow import sideways, sideways_at
from tests.support.waiting import wait_until

RETRY = "/code/lantern/src/retry.py"
POLICY = 11  # line of `class RetryPolicy`


def click_name(page: Page, number: int, name: str) -> None:
    # From the line's corner: the line moves, and its colours replace it, while others come.
    line(page, number).click(position=place_of(page, number, name))


def test_repositories_folders_and_files_are_reached_by_clicks(
    lantern: None, look: OpenPage
) -> None:
    page = look("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Code g b").click()
    page.get_by_role("main").get_by_role("link", name="lantern").click()
    expect(page).to_have_url(re.compile("/code/lantern$"))
    tree = page.locator("#files")
    tree.get_by_text("src", exact=True).click()
    tree.get_by_role("link", name="retry.py").click()
    expect(page).to_have_url(re.compile(f"{RETRY}$"))
    expect(page.get_by_role("heading", name="retry.py", level=1)).to_be_visible()
    expect(tree.locator('[aria-current="page"]')).to_have_text("retry.py")
    expect(line(page, POLICY)).to_contain_text("class RetryPolicy")
    page.get_by_role("navigation", name="Path").get_by_role("link", name="src").click()
    expect(page.get_by_role("main").get_by_role("link", name="limit.c")).to_be_visible()


def test_keys_lead_to_the_code_and_to_a_file(lantern: None, look: OpenPage) -> None:
    page = look("/")
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile("/code$"))
    go(page, "/code/lantern")
    page.keyboard.press("/")
    expect(page.get_by_label("Find a file")).to_be_focused()
    page.keyboard.type("RETRY")
    found = page.locator("#files").get_by_role("link")
    expect(found).to_have_count(1)
    page.get_by_label("Find a file").fill("")
    expect(page.locator("#files details").first).to_be_visible()
    page.get_by_label("Find a file").fill("long.py")
    expect(found).to_have_text(["src/long.py"])
    found.click()
    expect(page.get_by_role("heading", name="long.py")).to_be_visible()


def test_the_outline_marks_the_current_function_and_follows(lantern: None, look: OpenPage) -> None:
    page = look(LONG_FILE)
    current = page.locator(".outline [aria-current]")
    expect(current).to_have_text(re.compile("Keeper0"))
    outline = page.get_by_role("navigation", name="Outline of long.py")
    outline.get_by_title("method Keeper30.step_305,", exact=False).click()
    expect(page.locator("[data-current-symbol]")).to_have_text("Keeper30.step_305")
    expect(current).to_have_text(re.compile("step_305"))
    page.locator(".viewer__code").evaluate("pane => (pane.scrollTop = pane.scrollHeight / 2)")
    expect(current).not_to_have_text(re.compile("step_305"))
    marked = current.get_attribute("data-first")
    # A third from the top of the pane, so both can be seen.
    expect(page.locator(f'.ln[name="L{marked}"]')).to_be_in_viewport()
    expect(current).to_be_in_viewport()
    page.locator(".viewer__code").evaluate("pane => (pane.scrollTop = pane.scrollHeight)")
    expect(current).to_have_attribute("data-last", re.compile(str(LONG.count("\n"))))


def test_the_outline_lists_a_macro_of_two_branches_once(lantern: None, look: OpenPage) -> None:
    page = look("/code/lantern/src/limit.c")
    outline = page.get_by_role("navigation", name="Outline of limit.c")
    expect(outline.get_by_role("link")).to_have_count(2)
    expect(outline.get_by_title("macro LIMIT, line 2")).to_be_visible()


def test_a_click_on_a_name_shows_definition_callers_and_uses(lantern: None, look: OpenPage) -> None:
    page = look("/code/lantern/src/work.py")
    click_name(page, 5, "RetryPolicy")
    expect(panel(page).get_by_role("region", name="Definitions")).to_contain_text("src/retry.py:11")
    expect(panel(page).get_by_role("region", name="Uses")).to_contain_text("src/retry.py")
    expect(panel(page)).not_to_contain_text("Looking…")
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    # The parse process is there by now: on a busy machine it may take longer than a look-up waits.
    click_name(page, 5, "RetryPolicy")
    expect(panel(page).get_by_role("region", name="Callers")).to_contain_text("in again")
    panel(page).get_by_role("link", name=re.compile("class RetryPolicy.*11")).first.click()
    expect(page).to_have_url(re.compile(rf"{RETRY}\?lines=11-18#L11$"))
    expect(line(page, POLICY)).to_have_class(re.compile("is-cited"))
    expect(line(page, POLICY)).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_role("heading", name="work.py")).to_be_visible()


def test_a_definition_in_the_same_file_is_reached_without_loading(
    lantern: None, look: OpenPage
) -> None:
    page = look(LONG_FILE)
    page.evaluate("window.same = true")
    click_name(page, 6, "step_2")
    panel(page).get_by_role("link", name=re.compile("def step_2")).first.click()
    expect(page).to_have_url(re.compile(r"\?lines=\d+-\d+#L\d+$"))
    expect(panel(page)).to_be_hidden()
    expect(page.locator(".is-cited").first).to_contain_text("def step_2")
    assert page.evaluate("window.same")
    page.go_back()
    expect(page).to_have_url(re.compile("long.py$"))


def test_nothing_but_a_name_opens_the_panel(lantern: None, look: OpenPage) -> None:
    page = look(RETRY)
    empty = line(page, POLICY).evaluate("line => line.clientWidth - 30")
    line(page, POLICY).click(position={"x": empty, "y": 8})
    click_name(page, POLICY, "class")
    page.locator('.ln[name="L3"]').click()
    expect(panel(page)).to_be_hidden()
    line(page, POLICY).get_by_text("RetryPolicy").dblclick()
    assert page.evaluate("getSelection().toString()") == "RetryPolicy"
    expect(panel(page)).to_be_hidden()


def test_by_keyboard_the_names_of_a_line_are_offered(lantern: None, look: OpenPage) -> None:
    page = look(f"{RETRY}?lines=17")
    page.locator(".viewer__code").focus()
    page.keyboard.press("Tab")
    expect(page.locator('.ln[name="L17"]')).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator('.ln[name="L18"]')).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("d")
    offered = panel(page).get_by_role("button")
    expect(offered).to_have_text(["should_retry", "self", "attempt", "int", "bool"])
    expect(offered.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("region", name="Definitions")).to_contain_text("here")
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    expect(page.locator('.ln[name="L17"]')).to_be_focused()


def test_lines_are_selected_and_their_permalink_is_copied(lantern: None, look: OpenPage) -> None:
    page = look(RETRY)
    page.locator('.ln[name="L6"]').click()
    expect(page).to_have_url(re.compile(r"retry\.py\?lines=6$"))
    page.locator('.ln[name="L8"]').click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile(r"retry\.py\?lines=6-8$"))
    expect(page.locator(".is-cited")).to_have_count(3)
    expect(page.locator(".viewer__head")).to_contain_text("Lines 6–8")
    page.keyboard.press("y")
    expect(page.get_by_text("Copied")).to_be_visible()
    wait_until(lambda: clipboard(page) == page.url)
    page.get_by_role("button", name="Copy path and lines").click()
    copied = "lantern/src/retry.py:6-8"
    wait_until(lambda: clipboard(page) == copied)
    editor = page.get_by_role("link", name="Open in VS Code")
    expect(editor).to_have_attribute(
        "href", re.compile(r"^vscode://file/.*/lantern/src/retry\.py:6$")
    )
    load_again(page)
    expect(page.locator(".is-cited")).to_have_count(3)
    page.locator('.ln[name="L6"]').focus()
    page.keyboard.press("Shift+ArrowUp")
    expect(page).to_have_url(re.compile(r"lines=5-6$"))


def test_a_search_leads_from_match_to_match(lantern: None, look: OpenPage) -> None:
    page = look("/search?q=should_retry&repository=lantern")
    page.locator(".hit").filter(has_text="retry.py").locator("[data-row-focus]").first.click()
    expect(page.get_by_role("group", name="Matches")).to_contain_text("should_retry")
    go(page, f"{LONG_FILE}?find=step_605")
    expect(page.get_by_role("status").filter(has_text="2 matches")).to_be_visible()
    page.keyboard.press("]")
    expect(page.get_by_text("1 of 2")).to_be_visible()
    expect(page.locator(".is-cited")).to_contain_text("step_605")
    expect(page.locator(".is-cited")).to_be_in_viewport()
    page.get_by_role("button", name="Next match").click()
    expect(page.locator(".is-cited")).to_contain_text("def step_605")
    page.keyboard.press("[")
    expect(page.get_by_text("1 of 2")).to_be_visible()
    expect(page).to_have_url(re.compile(r"lines=\d+&find=step_605$"))


def test_a_long_file_is_coloured_where_it_is_read(lantern: None, look: OpenPage) -> None:
    page = look(LONG_FILE)
    expect(page.locator(".viewer__code .line")).to_have_count(LONG.count("\n"))
    end = LONG.count("\n")
    expect(page.locator("[data-plain]").nth(5)).to_be_attached()
    expect(page.locator(".viewer__code .block:last-child .k")).to_have_count(0)
    line(page, end).scroll_into_view_if_needed()
    expect(line(page, end).locator(".k")).to_have_count(1)
    # Few elements: names are none, and lines far away have no colours.
    expect(page.locator(".viewer__code *").nth(4 * LONG.count("\n"))).not_to_be_attached()


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_name_in_the_pane_beside_an_answer_opens_in_the_pane(
    lantern: None, look: OpenPage, conversation: str, size: tuple[int, int]
) -> None:
    page = open_wide(look, conversation) if size == WIDE else look(conversation, size=size)
    rows(page)
    row = page.locator('.source-row[data-source*="repo=harbour"]').first
    place = citation_of(row)
    row.click()
    stands_at(page, place)
    cited = page.locator("#source .is-cited").filter(has_text=re.compile("def ")).first
    expect(cited).to_be_visible()
    number = int(cited.locator(".ln").text_content() or 0)
    found = re.search(r"def (\w+)", cited.text_content() or "")
    assert found
    name = found[1]
    click_name(page, number, name)
    link = panel(page).get_by_role("link", name=re.compile(f"def {name}")).first
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    expect(page.locator("#source")).to_be_visible()
    click_name(page, number, name)
    address = page.url
    head = page.locator("#source .viewer__head")
    head.evaluate("head => (head.dataset.old = '')")
    link.click()
    expect(panel(page)).to_be_hidden()
    # The definition may be what is cited: only the pane itself tells that it was read again.
    expect(page.locator("#source .viewer__head:not([data-old])")).to_be_visible()
    expect(page.locator("#source .is-cited").first).to_contain_text(name)
    expect(page).to_have_url(re.compile(re.escape(address.split("?")[0]) + r"(\?|$)"))
    # A line that is chosen here is not in the address of the page: that names the citation.
    before = page.url
    page.locator(f'#source .ln[name="L{number}"]').click()
    expect(head).to_contain_text(f"Line {number}")
    expect(page).to_have_url(before)


@pytest.mark.parametrize("width", [1200, 1440, 390, 320])
def test_the_head_of_the_pane_has_the_whole_name_and_never_grows(
    lantern: None, look: OpenPage, conversation: str, width: int
) -> None:
    page = look(conversation, size=(width, 800))
    rows(page)[0].click()
    expect(page.locator("#source .is-cited").first).to_be_visible()
    settled(page)
    head = page.locator("#source .viewer__head--pane")
    head.locator(".dir").evaluate("dir => (dir.textContent = 'a/folder/of/many/'.repeat(9))")
    before = head.bounding_box()
    path = head.locator(".path")
    assert path.evaluate("path => path.scrollWidth <= path.clientWidth")
    head.locator("[data-cited]").evaluate(
        "text => (text.textContent = 'Lines 1234–5678, moved '.repeat(9))"
    )
    after = head.bounding_box()
    assert after == before
    assert sideways(page) == 0


def test_a_name_of_a_search_hit_is_looked_up(lantern: None, look: OpenPage) -> None:
    page = look("/search?q=should_retry&repository=lantern")
    page.locator(".hit .code .line").get_by_text("should_retry").first.click()
    expect(panel(page).get_by_role("region", name="Definitions")).to_contain_text("src/retry.py:17")


def test_hostile_names_open(lantern: None, look: OpenPage) -> None:
    page = look("/code/lantern/odd")
    links = page.locator(".folder [data-row-focus]")
    expect(links).to_have_count(4)
    for index in range(4):
        links.nth(index).click()
        expect(line(page, 1)).to_contain_text("x =")
        page.go_back()
    go(page, f"/code/lantern/{'deep/' * 40}end.py")
    expect(line(page, 1)).to_contain_text("x = 5")


ADDRESSES = (
    "/code",
    "/code/lantern",
    "/code/lantern/odd",
    f"{RETRY}?lines=11-12&find=retry",
    f"/code/lantern/{'deep/' * 40}end.py",
    "/code/lantern/wide.py",
    "/code/nowhere",
)


# The other addresses are states of the gallery.
@pytest.mark.parametrize("address", [ADDRESSES[2], ADDRESSES[4], ADDRESSES[5]])
def test_axe_has_no_objections(lantern: None, look: OpenPage, address: str) -> None:
    assert objections_of_looks(look(address)) == []


def test_axe_has_no_objections_to_the_panel(lantern: None, look: OpenPage) -> None:
    page = look("/code/lantern/src/work.py")
    click_name(page, 5, "RetryPolicy")
    expect(panel(page)).not_to_contain_text("Looking…")
    settled(page)
    assert objections_of_looks(page) == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_scrolls_sideways(
    lantern: None, look: OpenPage, complaints: Complaints, address: str
) -> None:
    complaints.expected.append("status of 404")
    assert sideways_at(look(address), (320, 390, 768, 1600)) == {}
