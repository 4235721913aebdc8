"""States of the other pages that only `make screenshots` draws, for the tests would take too long
with them."""

import re
from collections.abc import Callable, Mapping

from playwright.sync_api import Page, expect

from tests.browser.chromium import PHONE, go
from tests.browser.code_lines import line, place_of, wait_for_colours
from tests.browser.drawn_chat import CHAT
from tests.browser.lantern import LONG_FILE
from tests.browser.sample_history import NEW
from tests.browser.sample_shop import SHOP
from tests.browser.states import (
    LONG_WAIT,
    State,
    details,
    fronted,
    login,
    mapped,
    palette,
    presses,
    row,
    shows,
)


def with_callers(page: Page) -> None:
    """The panel of a component whose name was clicked."""
    place = SHOP["web/Cart.vue"].split("import OrderRow")[0].count("\n") + 1
    wait_for_colours(page, place)
    line(page, place).click(position=place_of(page, place, "OrderRow"))
    expect(page.get_by_role("region", name="Callers")).to_contain_text("Cart.vue")


def started(name: str, shown: str, *, dry_run: bool = False) -> Callable[[Page], None]:
    """An ingest of the folder of a listed repository."""

    def reach(page: Page) -> None:
        page.get_by_label("Folder path").fill(path_of(page, name))
        page.get_by_label("Display name").fill(name)
        page.get_by_role("checkbox", name="Dry run").set_checked(dry_run)
        page.get_by_role("button", name="Start ingest").click()
        expect(page.locator("#active-run")).to_contain_text(shown, timeout=LONG_WAIT)

    return reach


def path_of(page: Page, name: str) -> str:
    return row(page, name).locator(".cell-path > span").first.text_content() or ""


def again(name: str, shown: str) -> Callable[[Page], None]:
    def reach(page: Page) -> None:
        row(page, name).get_by_role("button", name="Re-embed").click()
        expect(page.locator("#active-run")).to_contain_text(shown, timeout=LONG_WAIT)

    return reach


def with_url(page: Page) -> None:
    page.get_by_label("Folder path").fill("https://github.com/team/harbour@v1")


def with_ref(page: Page) -> None:
    row(page, "pier").first.get_by_role("button", name="Details").click()
    page.get_by_label("Another branch, tag or commit").fill("v1")


def at_ref(page: Page) -> None:
    with_ref(page)
    page.get_by_role("dialog", name="pier").get_by_role("button", name="Ingest").click()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(row(page, "pier@v1")).to_contain_text("Completed", timeout=LONG_WAIT)


def addressed(page: Page) -> None:
    page.get_by_role("button", name="Add to Cursor…").click()
    expect(page.get_by_role("heading", name="Add codeinfo to Cursor")).to_be_visible()


def checked_lmstudio(page: Page) -> None:
    expect(page.get_by_text("Connected to")).to_be_visible(timeout=LONG_WAIT)


def opened_entry(page: Page) -> None:
    page.get_by_role("button", name="Send sample log").click()
    page.get_by_role("button", name="Context of Sample log").first.click()
    expect(page.get_by_label("Entry").first).to_be_visible()


def interrupted(page: Page) -> None:
    page.route("**/ui/logs/stream*", lambda route: route.fulfill(status=502))
    go(page, "/logs")
    expect(page.get_by_text("Live updates are interrupted.")).to_be_visible()


def forged(page: Page) -> None:
    """A form of another site."""
    page.evaluate("""() => {
      const form = document.createElement("form");
      Object.assign(form, { method: "POST", action: "/logout" });
      document.body.append(form);
      form.submit();
    }""")
    shows("This form was not sent from a page of this server")(page)


def copied(page: Page) -> None:
    page.get_by_role("button", name="Copy permalink").click()
    expect(page.locator("#toasts").get_by_text("Copied")).to_be_visible()


def opened_service(page: Page) -> None:
    summary = page.locator("#connected summary").first
    expect(summary).to_be_visible()
    summary.click()


def first_of(path: str) -> Callable[[Page], None]:
    """The first row of a list of the admin, opened."""

    def reach(page: Page) -> None:
        into_admin(path)(page)
        page.locator("#result_list tbody a").first.click()
        expect(page.locator("#content form, #content .readonly").first).to_be_visible()

    return reach


def into_admin(path: str) -> Callable[[Page], None]:
    return login(f"/admin/{path}", "codeinfo admin", "keeper")


def refused_in_admin(page: Page) -> None:
    into_admin("auth/user/add/")(page)
    page.locator("[name=_save]").click()
    expect(page.locator(".errornote")).to_be_visible()


def asked_to_delete(page: Page) -> None:
    into_admin("conversations/conversation/")(page)
    page.locator("#result_list tbody input.action-select").first.check()
    page.locator("select[name=action]").select_option("delete_selected")
    page.get_by_role("button", name="Go").or_(page.get_by_role("button", name="Run")).click()
    shows("Are you sure")(page)


CODE = "/code/harbour/src/harbour"
PAGES: Mapping[str, State] = {
    "rich-home": State("rich", "/", shows(re.compile("that is set up works|Needs attention"))),
    "rich-home-services": State("rich", "/", opened_service),
    "rich-code": State("rich", "/code"),
    "code-front-page": State("rich", "/code/pier", fronted),
    "code-front-languages": State("rich", "/code/harbour", fronted),
    "code-folder-below": State("rich", CODE, shows("crane.py")),
    "code-map-rich": State("rich", "/code/harbour?view=map", mapped),
    "code-map-zoomed": State("rich", f"{CODE}?view=map", mapped),
    "code-map-unimported": State("rich", "/code/lantern?view=map", mapped),
    "code-odd-names": State("rich", "/code/lantern/odd"),
    "code-deep": State("rich", f"/code/lantern/{'deep/' * 40}end.py"),
    "code-wide": State("rich", "/code/lantern/wide.py"),
    "code-long": State("rich", f"{LONG_FILE}?lines=1528-1534"),
    "code-found": State("rich", "/code/lantern/src/retry.py?find=attempt"),
    "code-found-nothing": State("rich", "/code/lantern/src/retry.py?find=zebra"),
    "code-copied": State("rich", "/code/lantern/src/retry.py", copied),
    "code-markdown-source": State("rich", "/code/lantern/README.md?view=source"),
    "code-notebook": State("rich", "/code/shop/notebooks/churn.ipynb", shows("Churn model")),
    "code-notebook-source": State("rich", "/code/shop/notebooks/churn.ipynb?view=source"),
    "code-component": State("rich", "/code/shop/web/Cart.vue", with_callers),
    "code-openapi": State("rich", "/code/shop/docs/openapi.yaml"),
    "code-excluded": State("rich", "/code/lantern/package-lock.json"),
    "code-no-repository": State("rich", "/code/nowhere"),
    "history-renamed": State("rich", f"/code/pier/{NEW}?view=history"),
    "history-lines": State("rich", f"/code/pier/{NEW}?view=history&lines=6-9"),
    "history-blame-renamed": State("rich", f"/code/pier/{NEW}?view=blame"),
    "history-uncommitted": State("rich", "/code/pier?view=diff&to=HEAD"),
    "history-of-all": State("rich", "/code/pier?view=history"),
    "history-lost-commit": State("rich", "/code/pier?view=diff&to=nowhere"),
    "impact-drawn": State("rich", "/code/pier?view=impact"),
    "impact-since-tag": State("rich", "/code/pier?view=impact&base=v1"),
    "impact-lost-base": State("rich", "/code/pier?view=impact&base=nowhere"),
    "search-chinese": State("rich", "/search?repository=shop&q=订单折扣怎么计算"),
    "search-expression": State("rich", r"/search?q=/def+step_30\d\(/+-step_301"),
    "search-broken-expression": State("rich", "/search?q=/def+step_(/"),
    "search-many": State("rich", "/search?q=content:oil"),
    "search-later-page": State("rich", "/search?q=content:oil&cursor=3&page=3"),
    "search-case": State("rich", "/search?q=case:yes+content:Keeper"),
    "search-odd": State("rich", "/search?q=(+OR+)"),
    "search-question": State("rich", "/search?q=how+is+an+order+priced+with+its+discount"),
    "palette-empty": State("rich", "/", lambda page: page.keyboard.press("Control+k")),
    "palette-line": State("rich", "/", palette("retry.py:8", "retry.py")),
    "palette-phone": State("rich", "/", palette("retry", "retry.py"), PHONE[0]),
    "ingest-rich": State("rich", "/ingest"),
    "ingest-url": State("rich", "/ingest", with_url),
    "ingest-ref": State("rich", "/ingest", with_ref),
    "ingest-dry-run": State("rich", "/ingest", started("shop", "Dry run", dry_run=True)),
    "ingest-again": State("rich", "/ingest", again("shop", "No changes detected")),
    "ingest-at-ref": State("rich", "/ingest", at_ref),
    "search-at-ref": State("rich", "/search?q=rev:v1+fits"),
    "code-at-ref": State("rich", "/code/pier@v1", fronted),
    "lmstudio": State("rich", "/lmstudio", presses("Check status", "Connected to")),
    "providers": State("rich", "/providers"),
    "providers-connected": State("rich", "/providers", presses("Test", "Connected.")),
    "connect-change": State("rich", "/connect?client=cursor", addressed),
    "logs": State("rich", "/logs"),
    "logs-entry": State("rich", "/logs", opened_entry),
    "logs-interrupted": State("rich", "/logs", interrupted),
    "api-docs": State("rich", "/api/docs", shows("/tools/vector-search")),
    "error-form": State("rich", "/", forged),
    "error-request": State("rich", "/code/a%00b"),
    "login-of-admin": State("rich", "/admin/"),
    "admin": State("rich", "/login", into_admin("")),
    "admin-conversations": State("rich", "/login", into_admin("conversations/conversation/")),
    "admin-no-conversation": State(
        "rich", "/login", into_admin("conversations/conversation/?q=zebra")
    ),
    "admin-conversation": State("rich", "/login", first_of("conversations/conversation/")),
    "admin-delete": State("rich", "/login", asked_to_delete),
    "admin-turns": State("rich", "/login", into_admin("conversations/turn/")),
    "admin-turn": State("rich", "/login", first_of("conversations/turn/")),
    "admin-repositories": State("rich", "/login", into_admin("index/root/")),
    "admin-repository": State("rich", "/login", first_of("index/root/")),
    "admin-runs": State("rich", "/login", into_admin("index/ingestrun/")),
    "admin-run": State("rich", "/login", first_of("index/ingestrun/")),
    "admin-files": State("rich", "/login", into_admin("index/sourcefile/")),
    "admin-users": State("rich", "/login", into_admin("auth/user/")),
    "admin-user": State("rich", "/login", first_of("auth/user/")),
    "admin-new-user": State("rich", "/login", refused_in_admin),
    "admin-groups": State("rich", "/login", into_admin("auth/group/")),
    "admin-password": State("rich", "/login", into_admin("password_change/")),
    "worn-home": State("worn", "/", shows("Needs attention")),
    "worn-search": State("worn", "/search?q=retry+delay"),
    "worn-search-away": State("worn", "/search?q=sail&repository=harbour"),
    "worn-code": State("worn", "/code"),
    "worn-front-page": State("worn", "/code/lighthouse", fronted),
    "worn-front-page-away": State("worn", "/code/harbour", fronted),
    "worn-file": State("worn", "/code/lighthouse/src/retry.py?lines=6-8"),
    "worn-file-changed": State("worn", "/code/lighthouse/src/store.js?lines=1-3"),
    "worn-file-gone": State("worn", "/code/lighthouse/src/tide.py?lines=1-2"),
    "worn-file-away": State("worn", "/code/harbour/src/ship.py?lines=1-2"),
    "worn-impact": State("worn", "/code/lighthouse?view=impact"),
    "worn-ingest": State("worn", "/ingest"),
    "worn-ingest-details": State("worn", "/ingest", details),
    "worn-ingest-again": State("worn", "/ingest", again("harbour", "Failed")),
}
DRAWN = {**CHAT, **PAGES}
