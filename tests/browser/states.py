"""The states of the pages: where each is, and what brings it about."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.browser.chromium import go

LONG_WAIT = 60_000
QUESTION = "How long is the delay before a call is tried again?"


def as_it_opens(page: Page) -> None:
    """Nothing else is done."""


@dataclass(frozen=True)
class State:
    """One state of a page of a server of the gallery.

    reach: called with the open page; returns when the state is there.
    width: at which it is reached; one of a phone is looked at on a phone only.
    """

    server: str
    path: str
    reach: Callable[[Page], None] = as_it_opens
    width: int = 1280


def shows(text: str | re.Pattern[str]) -> Callable[[Page], None]:
    return lambda page: expect(page.get_by_text(text).first).to_be_visible()


def presses(name: str, shown: str | re.Pattern[str]) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        page.get_by_role("button", name=name).first.click()
        shows(shown)(page)

    return reach


def refused_path(path: str, error: str) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        page.get_by_label("Folder path").fill(path)
        page.get_by_label("Display name").fill("lost")
        page.get_by_role("button", name="Start ingest").click()
        expect(page.locator("#path-error")).to_contain_text(error)

    return reach


def refused_url(page: Page) -> None:
    page.get_by_label("Folder path").fill("http://example.com/team/app")
    expect(page.get_by_label("Display name")).to_have_value("")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.locator("#path-error")).to_contain_text("Repositories are fetched from https://")


def refused_picker(page: Page) -> None:
    page.get_by_label("Folder path").fill("/etc")
    page.get_by_role("button", name="Choose folder…").click()
    shows("Unable to list directories (OUTSIDE_BASE)")(page)


def palette(text: str, shown: str) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        page.keyboard.press("Control+k")
        page.keyboard.type(text)
        expect(page.locator("#palette")).to_contain_text(shown)

    return reach


def keys(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def refused_address(page: Page) -> None:
    card = page.get_by_role("region", name="OpenAI-compatible server")
    card.get_by_label("Address").fill("ftp://models")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_contain_text("must be a URL such as")


def unreachable_lmstudio(page: Page) -> None:
    page.get_by_label("LM Studio base URL").fill("ws://127.0.0.1:9")
    page.get_by_role("button", name="Check status").click()
    expect(page.locator("#lmstudio-error")).to_be_visible()


def tested_connection(page: Page) -> None:
    page.get_by_role("button", name="Test connection").click()
    rows = page.locator("[data-test-results] .badge")
    expect(rows).to_have_text([re.compile(r" ms$|^Failed$")] * 6, timeout=LONG_WAIT)


def skipped_files(page: Page) -> None:
    row(page, "lighthouse").get_by_role("button", name="Details").click()
    page.get_by_role("link", name="with reasons").click()
    expect(page.get_by_role("dialog", name="Skipped files")).to_be_visible()


def row(page: Page, name: str) -> Locator:
    return page.locator("#roots [data-row]").filter(has_text=name)


def details(page: Page) -> None:
    row(page, "lighthouse").get_by_role("button", name="Details").click()
    expect(page.get_by_role("dialog", name="lighthouse")).to_be_visible()


def removal(page: Page) -> None:
    page.get_by_role("button", name="Remove lighthouse").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def chosen_rows(page: Page) -> None:
    page.get_by_label("Select all").check()
    expect(page.get_by_role("form", name="Bulk actions")).to_be_visible()


def failed_ingest(page: Page) -> None:
    path = row(page, "lighthouse").locator(".cell-path > span").text_content() or ""
    page.get_by_label("Folder path").fill(path.replace("lighthouse", "nothing"))
    page.get_by_label("Display name").fill("nothing")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.locator("#active-run")).to_contain_text("No eligible files", timeout=LONG_WAIT)
    # The rows follow the run's end.
    again = row(page, "lighthouse").get_by_role("button", name="Re-embed")
    expect(again).to_be_enabled()


def asked(model: str, end: str, question: str = QUESTION) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        page.get_by_label("Model").select_option(model)
        page.get_by_label("Message").fill(question)
        page.get_by_label("Message").press("Enter")
        expect(page.locator("#turns > .turn [data-chip]")).to_have_text(end, timeout=LONG_WAIT)

    return reach


def cited(page: Page) -> None:
    asked("tool", "Complete")(page)
    expect(page.locator(".viewer .line.is-cited").first).to_be_visible()
    for summary in page.locator(".turn .step > summary").all():
        summary.click()
    page.locator(".sources > summary").click()


def versioned(page: Page) -> None:
    asked("plain", "Complete")(page)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Versions of the answer")).to_contain_text("2/2")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)


def prompts(page: Page) -> None:
    page.get_by_role("button", name="Prompts", exact=True).click()
    page.get_by_text("Edit prompts…").click()
    expect(page.get_by_role("dialog", name="Prompts")).to_be_visible()


def tagged(page: Page) -> None:
    asked("plain", "Complete")(page)
    page.get_by_role("button", name="Good answer").click()
    page.get_by_role("button", name="More actions").click()
    page.locator("#convo-menu").get_by_text("Tags…").click()
    page.get_by_label("Add a tag").fill("Needs review")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("list", name="Tags")).to_have_text("#needs-review")


def archived(page: Page) -> None:
    asked("plain", "Complete")(page)
    page.locator("#more-actions").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    # The page opens the conversation again by itself.
    shows("This conversation is archived.")(page)


def linked(page: Page) -> None:
    asked("tool", "Complete")(page)
    page.locator("#more-actions").click()
    page.get_by_role("button", name="Share…").click()
    page.get_by_role("button", name="Make a link").click()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_focused()


def copied(page: Page) -> None:
    linked(page)
    go(page, page.get_by_label("Link (shown only once)").input_value())
    expect(page.locator(".passages .line").first).to_be_visible()


def filtered_sidebar(page: Page) -> None:
    page.get_by_label("Search conversations").fill("zebra crossing")
    shows("No conversation has")(page)


def instructed(page: Page) -> None:
    page.get_by_label("Instruction").fill("Which ships are there?")
    page.get_by_label("Instruction").press("Enter")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)


def named(page: Page) -> None:
    line = page.locator('.viewer__code .line:has(.ln[name="L11"])')
    line.click(position={"x": 130, "y": 10})
    expect(page.get_by_role("dialog")).to_contain_text("Used")


def login(path: str, shown: str | re.Pattern[str], name: str = "ada") -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill("right-one-9")
        page.get_by_role("button", name="Log in").click()
        go(page, path)
        shows(shown)(page)

    return reach


def allowable(page: Page) -> None:
    login("/ingest", "Start ingest", "keeper")(page)
    refused_path("/etc", "")(page)
    expect(page.get_by_role("button", name="Allow this folder")).to_be_visible()


def wrong_password(page: Page) -> None:
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    shows("The name or the password is wrong.")(page)


def fronted(page: Page) -> None:
    expect(page.locator("#facts")).not_to_have_attribute("aria-busy", "true")


def mapped(page: Page) -> None:
    expect(page.locator("#imports")).not_to_have_attribute("aria-busy", "true")


HERE = re.compile("that is set up works|Needs attention")
STATES: dict[str, State] = {
    "new-home": State("new", "/", shows(HERE)),
    "new-chat": State("new", "/chat", shows("How to connect")),
    "new-search": State("new", "/search"),
    "new-search-asked": State("new", "/search?q=retry"),
    "new-symbols": State("new", "/search?mode=symbols"),
    "new-code": State("new", "/code"),
    "new-ingest": State("new", "/ingest"),
    "new-ingest-blank": State("new", "/ingest", presses("Start ingest", "Path is required")),
    "new-ingest-outside": State("new", "/ingest", refused_path("/etc", "Only folders beneath")),
    "new-ingest-url": State("new", "/ingest", refused_url),
    "new-ingest-picker": State("new", "/ingest", presses("Choose folder…", "Use this folder")),
    "new-ingest-picker-refused": State("new", "/ingest", refused_picker),
    "new-agents": State("new", "/agents"),
    "new-lmstudio": State("new", "/lmstudio"),
    "new-lmstudio-refused": State("new", "/lmstudio", unreachable_lmstudio),
    "new-providers": State("new", "/providers", presses("Set up Codex", "Codex cannot be used")),
    "new-providers-refused": State("new", "/providers", refused_address),
    "new-connect": State("new", "/connect"),
    "new-logs": State("new", "/logs"),
    "new-logs-none": State("new", "/logs?text=zebra", shows("No line matches")),
    "new-nowhere": State("new", "/nowhere"),
    "new-palette": State("new", "/", lambda page: page.keyboard.press("Control+k")),
    "new-palette-nothing": State("new", "/", palette("zebra", "Nothing matches")),
    "new-keys": State("new", "/", keys),
    "busy-ingest": State("busy", "/ingest"),
    "busy-home": State("busy", "/", shows(HERE)),
    "busy-chat": State("busy", "/chat", shows("Ingesting shop")),
    "home": State("filled", "/", shows(HERE)),
    "chat": State("filled", "/chat", shows("Ask about")),
    "chat-answer": State("filled", "/chat", cited),
    "chat-failed": State("filled", "/chat", asked("error-middle", "Failed")),
    "chat-versions": State("filled", "/chat", versioned),
    "chat-archived": State("filled", "/chat", archived),
    "chat-share": State("filled", "/chat", linked),
    "shared": State("filled", "/chat", copied),
    "shared-nothing": State("filled", "/shared/nothing"),
    "chat-prompts": State("filled", "/chat", prompts),
    "chat-tags": State("filled", "/chat", tagged),
    "chat-nothing-found": State("filled", "/chat", filtered_sidebar),
    "search": State("filled", "/search?q=backoff+delay"),
    "search-nothing": State("filled", "/search?q=%22zebra+crossing%22"),
    "search-excluded": State("filled", "/search?q=retry+lang:go+file:nowhere/"),
    "search-symbol": State("filled", "/search?mode=symbols&q=RetryPolicy"),
    "search-no-symbol": State("filled", "/search?mode=symbols&q=zebra"),
    "search-refused": State("filled", "/search?q=-zebra"),
    "search-hint": State("filled", "/search?q=retry+lang:klingon"),
    "search-lines": State("filled", "/search?q=(sym:RetryPolicy+OR+content:return)"),
    "search-files": State("filled", "/search?q=type:file+retry"),
    "search-lost": State("filled", "/search?q=retry&repository=lost"),
    "code": State("filled", "/code"),
    "code-folder": State("filled", "/code/lighthouse", fronted),
    "code-map": State("filled", "/code/lighthouse?view=map&cited=src/retry.py:11-14", mapped),
    "code-document": State("filled", "/code/lighthouse/README.md"),
    "code-file": State("filled", "/code/lighthouse/src/retry.py?lines=11-14"),
    "code-name": State("filled", "/code/lighthouse/src/retry.py", named),
    "code-lost": State("filled", "/code/lighthouse/lost.py"),
    "history": State("filled", "/code/lighthouse/src/retry.py?view=history"),
    "history-blame": State("filled", "/code/lighthouse/src/retry.py?view=blame"),
    "history-change": State("filled", "/code/lighthouse?view=diff&to=HEAD"),
    "impact": State("filled", "/code/lighthouse?view=impact"),
    "impact-none": State("filled", "/code/harbour?view=impact"),
    "history-none": State("filled", "/code/harbour/src/ship_1.py?view=history"),
    "ingest": State("filled", "/ingest"),
    "ingest-details": State("filled", "/ingest", details),
    "ingest-skipped": State("filled", "/ingest", skipped_files),
    "ingest-removal": State("filled", "/ingest", removal),
    "ingest-model": State("filled", "/ingest", presses("Change…", "Re-embed all")),
    "ingest-chosen": State("filled", "/ingest", chosen_rows),
    "ingest-failed": State("filled", "/ingest", failed_ingest),
    "agents": State("filled", "/agents?a=keeper"),
    "agents-answer": State("filled", "/agents?a=keeper", instructed),
    "agents-wreck": State("filled", "/agents?a=wreck"),
    "agents-lost": State("filled", "/agents?a=lost"),
    "connect": State("filled", "/connect"),
    "connect-tested": State("filled", "/connect", tested_connection),
    "palette": State("filled", "/", palette("backoff", "backoff_delay")),
    "login": State("guarded", "/login"),
    "login-refused": State("guarded", "/login", wrong_password),
    "user-home": State("guarded", "/login", login("/", "What is connected")),
    "user-chat": State("guarded", "/login", login("/chat", "Staff chooses")),
    "user-ingest": State("guarded", "/login", login("/ingest", "Nothing is being ingested.")),
    "user-lmstudio": State("guarded", "/login", login("/lmstudio", "Staff chooses")),
    "user-search": State("guarded", "/login", login("/search", "Nothing is ingested")),
    "user-refused": State("guarded", "/login", login("/logs", "Only staff")),
    "staff-ingest-allow": State("guarded", "/login", allowable),
    "staff-admin": State("guarded", "/login", login("/admin/", "Ingests failed", "keeper")),
}
