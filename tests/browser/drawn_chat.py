"""States of the chat and agents pages that only `make screenshots` draws."""

from collections.abc import Callable, Mapping

from playwright.sync_api import Page, expect

from tests.browser.chromium import PHONE, settled
from tests.browser.states import LONG_WAIT, QUESTION, State, asked, shows

# Questions about the files of tests/lookup/harbours.py.
SHAPES = {
    "callers": "What calls weigh()?",
    "importers": "Which files import src/harbour/views.py?",
    "uses": "Where is MAX_BERTHS used?",
    "tests": "Where is Crane.lift tested?",
    "configuration": "Where is MAX_BERTHS configured?",
    "definition": "Where is Crane.lift defined?",
    "implementations": "subclasses of Machine",
    "path": "How does serve() reach weigh()?",
    "steps": "What does serve() do, step by step?",
    "file": "What does crane.py do?",
    "entry-points": "Where is the entry point?",
    "route": "Where is route /ships/7?",
    "trace": (
        "Traceback (most recent call last):\n"
        '  File "harbour/cli.py", line 10, in serve\n    Crane().lift(3)\n'
        '  File "harbour/crane.py", line 23, in weigh\n'
        '    raise ValueError("a load has no negative weight")\n'
        "ValueError: a load has no negative weight"
    ),
    "commands": "How is this project built?",
    "languages": "Which languages is this written in?",
    "modules": "How is this repository organised?",
    "overview": "What does this repository do?",
    "nothing": "What calls `launch_rocket`?",
}
LONG_QUESTION = f"Why does {'an_unbroken_name' * 12} fail?\n\n{'It fails each time. ' * 30}"


def choose_provider(page: Page, provider: str) -> None:
    page.get_by_label("Provider").select_option(provider)
    settled(page)  # its models come


def searched(question: str) -> Callable[[Page], None]:
    """An answer of the search alone."""

    def reach(page: Page) -> None:
        choose_provider(page, "builtin")
        asked("search", "Complete", question)(page)

    return reach


def modelled(
    model: str, end: str, question: str = QUESTION, provider: str = "openai"
) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        choose_provider(page, provider)
        asked(model, end, question)(page)

    return reach


def streaming(page: Page) -> None:
    modelled("pauses", "Processing")(page)
    expect(page.locator("#turns > .turn")).to_contain_text("Sentence 1", timeout=LONG_WAIT)


def thinking(page: Page) -> None:
    modelled("stall", "Processing")(page)
    shows("Thinking…")(page)


def stopped(page: Page) -> None:
    streaming(page)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Stopped")


def editing(page: Page) -> None:
    modelled("plain", "Complete")(page)
    page.locator(".turn .ask").hover()
    page.get_by_role("button", name="Edit and resend").click()
    shows("You are editing an earlier question.")(page)


def edited(page: Page) -> None:
    editing(page)
    page.get_by_label("Message").fill("How often is a call tried again?")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_role("group", name="Versions of the question")).to_contain_text("2/2")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)


def limiting(page: Page) -> None:
    page.get_by_role("button", name="Limit").click()
    expect(page.locator("#scope-options [role=option]").first).to_be_visible()


def drawn_diagram(page: Page) -> None:
    modelled("long", "Complete")(page)
    expect(page.locator(".diagram__img").first).to_be_attached(timeout=LONG_WAIT)


def actions(then: str = "") -> Callable[[Page], None]:
    """The menu of a conversation, or the dialog of one of its rows."""

    def reach(page: Page) -> None:
        modelled("plain", "Complete")(page)
        page.locator("#more-actions").click()
        expect(page.locator("#convo-menu")).to_be_visible()
        if then:
            page.locator("#convo-menu").get_by_role("button", name=then).click()
            expect(page.get_by_role("dialog")).to_be_visible()

    return reach


def choosing(page: Page) -> None:
    page.get_by_role("button", name="Select conversations").click()
    page.get_by_label("Select all").check()


def menu(page: Page) -> None:
    page.get_by_role("link", name="Open menu").click()
    expect(page.locator("#sidebar")).to_be_visible()


def opened_lines(page: Page) -> None:
    searched("How does serve() reach weigh()?")(page)
    page.locator(".turn a.cite").first.click()
    expect(page.locator("#source .line.is-cited").first).to_be_visible()


def history_away(page: Page) -> None:
    """As the socket shows it while the database is away."""
    page.locator("#history-away").evaluate("banner => (banner.hidden = false)")


def standing(page: Page) -> None:
    page.locator(".standing").scroll_into_view_if_needed()
    page.locator(".standing summary").click()


def halted(page: Page) -> None:
    page.locator("#command").select_option(label="watch ships")
    page.get_by_role("button", name="Execute command").click()
    shows("Step 1 of 2")(page)


def commanded(page: Page) -> None:
    page.locator("#command").select_option(label="watch ships")
    page.get_by_role("button", name="Execute command").click()
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text(
        ["Complete"] * 2, timeout=LONG_WAIT
    )


CHAT: Mapping[str, State] = {
    "chat-streaming": State("rich", "/chat", streaming),
    "chat-thinking": State("rich", "/chat", thinking),
    "chat-stopped": State("rich", "/chat", stopped),
    "chat-long": State("rich", "/chat", drawn_diagram),
    "chat-long-question": State("rich", "/chat", modelled("plain", "Complete", LONG_QUESTION)),
    "chat-thought": State("rich", "/chat", modelled("think", "Complete")),
    "chat-two-tools": State("rich", "/chat", modelled("two-tools", "Complete")),
    "chat-unknown-tool": State("rich", "/chat", modelled("unknown-tool", "Complete")),
    "chat-cut-short": State("rich", "/chat", modelled("length", "Failed")),
    "chat-empty-answer": State("rich", "/chat", modelled("empty", "Failed")),
    "chat-refused": State("rich", "/chat", modelled("status-429", "Failed")),
    "chat-lmstudio": State("rich", "/chat", modelled("reasoning", "Complete", provider="lmstudio")),
    "chat-editing": State("rich", "/chat", editing),
    "chat-edited": State("rich", "/chat", edited),
    "chat-limiting": State("rich", "/chat", limiting),
    "chat-limited": State("rich", "/chat?repo=lantern&repo=shop", shows("Ask about")),
    "chat-menu": State("rich", "/chat", actions()),
    "chat-rename": State("rich", "/chat", actions("Rename")),
    "chat-choosing": State("rich", "/chat", choosing),
    "chat-history-away": State("rich", "/chat", history_away),
    "chat-lost": State("rich", "/chat?c=nowhere"),
    "chat-phone-menu": State("rich", "/chat", menu, PHONE[0]),
    "chat-phone-lines": State("rich", "/chat?repo=harbour", opened_lines, PHONE[0]),
    **{
        f"shape-{name}": State("rich", "/chat?repo=harbour", searched(question))
        for name, question in SHAPES.items()
    },
    "agents-two-steps": State("rich", "/agents?a=keeper", commanded),
    "agents-running": State("rich", "/agents?a=halting", halted),
    "worn-chat": State("worn", "/chat?c=lighthouse", standing),
    "worn-chat-away": State("worn", "/chat?c=harbour"),
    "worn-chat-degraded": State("worn", "/chat?repo=lighthouse", searched(QUESTION)),
}
