"""What a tool returned, as a person reads it below its name: on a phone, and after a failure."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import WIDE, go
from tests.browser.conftest import OpenPage
from tests.browser.narrow import NARROW, OVERLAPS, sideways

ROW = {
    "repo": "a-repository-with-a-rather-long-name",
    "relPath": "src/a-folder-with-a-rather-long-name/scaffold.py",
    "hostPath": "/home/ada/a-repository/src/a-folder-with-a-rather-long-name/scaffold.py",
    "symbol": "Scaffold.add_url_rule",
    "startLine": 371,
    "endLine": 371,
    "chunk": "self.add_url_rule(rule, endpoint, view_function, **options)",
}
CALLS = [
    {
        "callId": "1",
        "name": "FindReferences",
        "stage": "success",
        "parameters": {"name": "add_url_rule"},
        "result": {"results": [ROW | {"kind": "reference"}], "truncated": False},
    },
    {
        "callId": "2",
        "name": "ListFiles",
        "stage": "success",
        "parameters": {},
        "result": {"results": [ROW | {"kind": "file", "size": 9_000, "chunk": None}]},
    },
    {
        "callId": "3",
        "name": "Grep",
        "stage": "error",
        "parameters": {"pattern": "("},
        "errorTrimmed": {"code": "BAD_PATTERN", "message": "missing )"},
        "errorFull": {"code": "BAD_PATTERN", "message": "missing )", "stack": "at character 1"},
    },
]


def opened(open_page: OpenPage, size: tuple[int, int], *, dark: bool = False) -> Page:
    """The page of a conversation with these calls, all open."""
    page = open_page("/", size=size, dark=dark)
    chosen = {"provider": "openai", "model": "m", "title": "Tools"}
    made = page.request.post("/conversations", data=chosen)
    assert made.ok, made.text()
    chat = made.json()["conversationId"]
    turn = {"role": "assistant", "content": "It is there.", "status": "ok"}
    added = page.request.post(
        f"/conversations/{chat}/turns",
        data={**turn, "model": "m", "provider": "openai", "toolCalls": {"calls": CALLS}},
    )
    assert added.ok, added.text()
    go(page, f"/chat?c={chat}")
    expect(steps(page)).to_have_count(len(CALLS))
    for step in steps(page).all():
        step.locator("summary").first.click()
    return page


def steps(page: Page) -> Locator:
    return page.locator("#turns .step")


def test_a_failed_call_shows_its_whole_error_on_request(open_page: OpenPage) -> None:
    page = opened(open_page, (1280, 800))
    failed = steps(page).filter(has_text="Grep")
    expect(failed.get_by_text("BAD_PATTERN: missing )").first).to_be_visible()
    failed.get_by_text("Show full error").click()
    expect(failed.get_by_text("at character 1")).to_be_visible()
    failed.get_by_text("Hide full error").click()
    expect(failed.get_by_text("at character 1")).to_be_hidden()
    expect(failed.get_by_text("Hide details")).to_be_visible()


def test_on_a_phone_a_row_gives_the_code_the_whole_width(open_page: OpenPage) -> None:
    page = opened(open_page, NARROW)
    row, code = (steps(page).first.locator(name) for name in (".tmatch", ".tmatch__text"))
    whole, part = row.bounding_box(), code.bounding_box()
    assert whole and part and part["width"] > 0.95 * whole["width"]
    expect(steps(page).first.get_by_text("1 line").first).to_be_visible()
    expect(row).to_contain_text("in Scaffold.add_url_rule")
    assert sideways(page) == 0
    assert page.evaluate(OVERLAPS) == []


def test_axe_has_no_objections(open_page: OpenPage) -> None:
    assert objections_of_looks(opened(open_page, WIDE)) == []
