"""The ingest page in a browser: from a folder to a list of roots, with everything on the way."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from apps.embedding.static import MODEL_ID
from tests.browser.chromium import PHONE, Complaints, Line, load_again
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.browser.repository import remove
from tests.support.git import git, init
from tests.support.ingested import SAMPLE, write_files

LONG_WAIT = 60_000
MANY_FILES = 4000

# Nobody can press a button sooner after it has come.
PRESS_THE_NEXT = """button => new MutationObserver((changes, observer) => {
  if (button.isConnected) return;
  observer.disconnect();
  document.getElementById(button.id).click();
}).observe(document.body, { childList: true, subtree: true })"""

MakeRepo = Callable[..., Path]


@pytest.fixture
def make_repo(product: Product) -> Iterator[MakeRepo]:
    """make_repo("name", {path: content}): a folder that may be ingested; gone, with its root, after
    the test."""
    made: list[Path] = []

    def make(name: str, files: dict[str, str] | None = None) -> Path:
        made.append(product.repos / name)
        return write_files(made[-1], files or SAMPLE)

    yield make
    for folder in made:
        remove(product, folder)


def row(page: Page, name: str) -> Locator:
    return page.locator("#roots [data-row]").filter(
        has=page.locator(".cell-title", has_text=re.compile(f"^{re.escape(name)}$"))
    )


def remove_by_click(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Remove {name}").click()
    dialog = page.get_by_role("dialog", name=f"Remove {name}?")
    dialog.get_by_role("button", name=f"Remove {name}").click()
    expect(row(page, name)).to_have_count(0, timeout=LONG_WAIT)


def start(page: Page, folder: Path, *, dry_run: bool = False) -> None:
    page.get_by_label("Folder path").fill(str(folder))
    page.get_by_label("Display name").fill(folder.name)
    page.get_by_role("checkbox", name="Dry run").set_checked(dry_run)
    page.get_by_role("button", name="Start ingest").click()


def module(number: int) -> tuple[str, str]:
    """A small source file: its path and content."""
    return f"pkg{number % 40}/module_{number}.py", f"def area(side):\n    return side * {number}\n"


def test_the_files_that_git_leaves_out_are_named_on_request(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    folder = init(make_repo("harbour", SAMPLE | {".gitignore": "store.js\n"}))
    git(folder, "add", "README.md")
    page = open_page("/ingest")
    start(page, folder)
    expect(row(page, "harbour")).to_contain_text("Completed", timeout=LONG_WAIT)
    page.get_by_role("link", name="1 ignored file or folder left out").click()
    drawer = page.get_by_role("dialog", name="Skipped files")
    expect(drawer).to_contain_text("src/store.js")
    expect(drawer).to_contain_text("Ignored by .gitignore")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_a_folder_is_listed_as_soon_as_it_is_ingested_and_until_it_is_removed(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    folder = make_repo("lighthouse")
    page = open_page("/ingest")
    watching = open_page("/ingest")
    start(page, folder)
    for each in (page, watching):
        expect(row(each, "lighthouse")).to_contain_text("Completed", timeout=LONG_WAIT)
        expect(each.get_by_text(f"Embedding model locked to {MODEL_ID}")).to_be_visible()
    expect(page.get_by_label("Embedding model")).to_be_disabled()
    expect(page.get_by_label("Folder path")).to_have_value("")
    remove_by_click(page, "lighthouse")
    expect(row(watching, "lighthouse")).to_have_count(0)


@pytest.mark.fault("A hostile repository")
def test_a_repository_that_is_not_read_is_offered_as_a_plain_folder(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    folder = make_repo("pointing", SAMPLE | {".git": "gitdir: nowhere"})
    page = open_page("/ingest", size=PHONE)
    start(page, folder)
    run = page.locator("#active-run")
    expect(run).to_contain_text("leads to a folder that is no repository", timeout=LONG_WAIT)
    page.get_by_role("button", name="Ingest as a plain folder").click()
    expect(row(page, "pointing")).to_contain_text("Completed", timeout=LONG_WAIT)
    expect(page.get_by_role("button", name="Ingest as a plain folder")).to_have_count(0)


@pytest.mark.fault("Most files have disappeared")
def test_most_files_gone_asks_before_they_are_taken_away(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    folder = make_repo("thinned", dict(module(number) for number in range(40)))
    page = open_page("/ingest", size=PHONE)
    start(page, folder)
    expect(row(page, "thinned")).to_contain_text("Completed", timeout=LONG_WAIT)
    for path in sorted(folder.rglob("*.py"))[:30]:
        path.unlink()
    row(page, "thinned").get_by_role("button", name="Re-embed").click()
    expect(row(page, "thinned")).to_contain_text("Needs confirmation", timeout=LONG_WAIT)
    run = page.locator("#active-run")
    expect(run).to_contain_text("30 of 40 files have disappeared")
    row(page, "thinned").get_by_role("button", name="Details").click()
    drawer = page.get_by_role("dialog", name="thinned")
    expect(drawer.get_by_role("button", name="Start again with force")).to_be_visible()
    drawer.get_by_role("button", name="Close").click()
    run.get_by_role("button", name="Start again with force").click()
    expect(run).to_contain_text("Removed vectors for 30 deleted file(s)", timeout=LONG_WAIT)
    expect(row(page, "thinned")).to_contain_text("Completed")


def test_progress_is_shown_and_a_cancel_leaves_nothing(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    folder = make_repo("crowd", dict(module(number) for number in range(MANY_FILES)))
    page = open_page("/ingest")
    home = open_page("/")
    start(page, folder)
    run = page.locator("#active-run")
    expect(run.get_by_role("heading", name="Active ingest")).to_be_visible()
    expect(run).to_contain_text(re.compile(r"[\d,]+ / 4,000 files"), timeout=LONG_WAIT)
    expect(run).to_contain_text(re.compile(r"pkg\d+/module_\d+\.py"))
    expect(run.locator("[aria-current=step]")).to_contain_text("Embedding")
    expect(page.get_by_role("button", name="Start ingest")).to_be_disabled()
    expect(page.get_by_text("One run at a time. crowd is active.")).to_be_visible()
    expect(home.locator("#foot-run")).to_contain_text("Ingesting crowd")
    run.get_by_role("button", name="Cancel ingest").click()
    expect(run.get_by_text("Cancelled").first).to_be_visible(timeout=LONG_WAIT)
    expect(home.locator("#foot-run")).to_be_empty()
    expect(row(page, "crowd")).to_have_count(0)
    expect(page.get_by_role("button", name="Start ingest")).to_be_enabled()
    expect(run).to_contain_text("Nothing was changed")
    run.get_by_role("button", name="Ingest again").click()
    expect(run).to_contain_text(re.compile(r"[\d,]+ / 4,000 files"), timeout=LONG_WAIT)
    run.get_by_role("button", name="Cancel ingest").click()
    expect(run.get_by_role("button", name="Ingest again")).to_be_visible(timeout=LONG_WAIT)


@pytest.mark.fault("Huge, minified and binary files")
def test_every_skipped_file_is_listed_with_its_reason(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    secrets = {f"keys/server_{n}.pem": "not shown to anyone\n" for n in range(230)}
    folder = make_repo("harbour", {**SAMPLE, **secrets})
    page = open_page("/ingest")
    start(page, folder)
    expect(row(page, "harbour")).to_contain_text("Completed", timeout=LONG_WAIT)
    opener = page.get_by_role("link", name="Skipped files")
    opener.click()
    drawer = page.get_by_role("dialog", name="Skipped files")
    expect(drawer).to_contain_text("231 in harbour")
    expect(drawer.locator("tbody tr")).to_have_count(201)
    drawer.get_by_role("button", name="Show more").click()
    expect(drawer.locator("tbody tr")).to_have_count(231)
    drawer.get_by_role("button", name=re.compile("^Generated")).click()
    expect(drawer.locator("tbody tr")).to_have_text([re.compile("package-lock.json.*Generated")])
    with page.expect_download() as download:
        drawer.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "skipped-harbour.csv"
    lines = download.value.path().read_text().splitlines()
    assert lines[0] == "path,reason,bytes"
    assert lines[1].startswith("package-lock.json,Generated,")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()


def test_details_tell_about_the_root(open_page: OpenPage, make_repo: MakeRepo) -> None:
    folder = make_repo("quay")
    page = open_page("/ingest", dark=True)
    start(page, folder)
    expect(row(page, "quay")).to_contain_text("Completed", timeout=LONG_WAIT)
    row(page, "quay").get_by_role("button", name="Details").click()
    drawer = page.get_by_role("dialog", name="quay")
    expect(drawer).to_contain_text(str(folder))
    expect(drawer).to_contain_text(MODEL_ID)
    drawer.get_by_text("Excluded names").click()
    expect(drawer.get_by_text("node_modules", exact=True)).to_be_visible()
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_be_hidden()


def test_a_dry_run_leaves_no_root(open_page: OpenPage, make_repo: MakeRepo) -> None:
    folder = make_repo("rehearsal")
    page = open_page("/ingest")
    start(page, folder, dry_run=True)
    run = page.locator("#active-run")
    expect(run).to_contain_text("Last ingest", timeout=LONG_WAIT)
    expect(run).to_contain_text("Dry run")
    expect(run).to_contain_text("Completed")
    expect(row(page, "rehearsal")).to_have_count(0)


def test_rows_are_reembedded_and_removed_together(open_page: OpenPage, make_repo: MakeRepo) -> None:
    page = open_page("/ingest")
    for name in ("pier-east", "pier-west"):
        start(page, make_repo(name))
        expect(row(page, name)).to_contain_text("Completed", timeout=LONG_WAIT)
    page.get_by_label("Filter folders").fill("pier-")
    page.get_by_label("Select all").check()
    bar = page.get_by_role("form", name="Bulk actions")
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Re-embed selected").click()
    expect(page.get_by_role("status").filter(has_text="2 re-embeds queued")).to_be_visible()
    remove_both = bar.get_by_role("button", name="Remove selected")
    expect(remove_both).to_be_enabled(timeout=LONG_WAIT)
    remove_both.click()
    dialog = page.get_by_role("dialog", name="Remove 2 folders?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Remove 2 folders").click()
    expect(page.locator("#roots [data-row]:visible")).to_have_count(0, timeout=LONG_WAIT)
    expect(bar).to_be_hidden()


def test_the_picker_walks_to_a_folder(open_page: OpenPage, product: Product) -> None:
    nested = product.repos / "fleet" / 'tug\'s "boat"'
    nested.mkdir(parents=True)
    page = open_page("/ingest")
    page.get_by_role("button", name="Choose folder…").click()
    dialog = page.get_by_role("dialog", name="Choose a folder")
    expect(dialog.get_by_role("button", name="Up")).to_have_count(0)
    dialog.get_by_role("button", name="fleet").click()
    dialog.get_by_role("button", name=nested.name).click()
    expect(dialog).to_contain_text("No child directories.")
    dialog.get_by_role("button", name="Up").click()
    expect(dialog.get_by_role("button", name=nested.name)).to_be_visible()
    dialog.get_by_role("button", name="Use this folder").click()
    expect(page.get_by_label("Folder path")).to_have_value(str(nested.parent))
    expect(page.get_by_label("Display name")).to_have_value("fleet")
    expect(page.get_by_label("Display name")).to_be_focused()
    shutil.rmtree(product.repos / "fleet")


def test_the_picker_shows_the_error_of_a_path(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    page.get_by_label("Folder path").fill("/etc")
    page.get_by_role("button", name="Choose folder…").click()
    dialog = page.get_by_role("dialog", name="Choose a folder")
    expect(dialog).to_contain_text("Unable to list directories (OUTSIDE_BASE).")
    expect(dialog.get_by_role("button", name="Use this folder")).to_be_disabled()


def test_each_field_shows_its_error(open_page: OpenPage, product: Product) -> None:
    page = open_page("/ingest")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.get_by_text("Path is required")).to_be_visible()
    page.get_by_label("Folder path").fill(str(product.repos / "nowhere"))
    expect(page.get_by_label("Display name")).to_have_value("nowhere")
    expect(page.get_by_text("Path is required")).to_be_hidden()
    page.get_by_role("button", name="Start ingest").click()
    expect(page.get_by_label("Folder path")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#path-error")).to_contain_text("does not exist")
    expect(page.get_by_label("Display name")).to_have_value("nowhere")


def test_a_form_whose_fields_an_extension_has_styled_comes_back(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    page.locator("#start-form input").evaluate_all("all => all.forEach(i => (i.style.width = 0))")
    page.get_by_label("Folder path").fill("/nowhere")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.locator("#path-error")).to_contain_text("Only folders beneath")


def test_a_lost_connection_is_shown_and_restored(
    open_page: OpenPage, complaints: Complaints
) -> None:
    complaints.expected += ["WebSocket", "htmx:wsError"]
    page = open_page("/ingest")
    foot = page.locator("[data-live-text]")
    expect(foot).to_have_text("Connected")
    line = Line(page, "/ws/ui/ingest")
    load_again(page)
    banner = page.get_by_text("Realtime updates unavailable.")
    expect(banner).to_be_visible()
    expect(foot).to_have_text("Server unreachable")
    line.broken = False
    expect(foot).to_have_text("Connected")
    expect(banner).to_be_hidden()


def test_focus_survives_an_update(open_page: OpenPage, make_repo: MakeRepo) -> None:
    page, other = open_page("/ingest"), open_page("/ingest")
    folder = make_repo("anchor")
    start(other, folder)
    for each in (page, other):
        expect(row(each, "anchor")).to_contain_text("Completed", timeout=LONG_WAIT)
    details = row(page, "anchor").get_by_role("button", name="Details")
    page.locator("h1").click()
    page.keyboard.press("j")
    expect(details).to_be_focused()
    page.evaluate("document.activeElement.dataset.before = 'yes'")
    # A run that changes nothing may be over before the page looks: its row stays.
    write_files(folder, {"src/chain.py": "def pay_out(fathoms):\n    return fathoms\n"})
    row(other, "anchor").get_by_role("button", name="Re-embed").click()
    expect(details).not_to_have_attribute("data-before", "yes")
    expect(details).to_be_focused()


def test_a_control_that_an_answer_brings_works_at_once(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    page = open_page("/ingest")
    start(page, make_repo("dock"))
    expect(row(page, "dock")).to_contain_text("Completed", timeout=LONG_WAIT)
    page.get_by_role("button", name="Change…").evaluate(PRESS_THE_NEXT)
    page.get_by_role("button", name="Refresh models").click()
    expect(page.locator("#dialog-slot dialog")).to_be_visible()


def test_a_press_is_kept_when_the_row_is_replaced_below_it(
    open_page: OpenPage, make_repo: MakeRepo
) -> None:
    page = open_page("/ingest")
    start(page, make_repo("capstan"))
    expect(row(page, "capstan")).to_contain_text("Completed", timeout=LONG_WAIT)
    button = row(page, "capstan").get_by_role("button", name="Re-embed")
    expect(button).to_be_enabled()
    button.hover()
    page.mouse.down()
    # An update of any root does the same.
    page.evaluate("roots.outerHTML = roots.outerHTML; htmx.process(document.body)")
    # Answered, so that the run is over before the folder is removed, and not on in the next test.
    with page.expect_response("**/ui/ingest/reembed"):
        page.mouse.up()


def press_start(page: Page) -> None:
    page.get_by_label("Folder path").fill("/nowhere")
    button = page.get_by_role("button", name="Start ingest")
    expect(button).to_be_enabled()  # the root of the test before may still be on its way out
    button.hover()
    page.mouse.down()


def move_start(page: Page) -> None:
    """Move the control by an element of its own: what htmx swaps in takes the attributes of what
    had its `id`, and a `style` among them is refused by the policy of contents."""
    page.evaluate("""() => {
      const room = document.createElement("div");
      room.style.height = "400px";
      document.getElementById("start-control").before(room);
    }""")


def test_a_press_is_kept_when_a_control_without_an_id_is_replaced_below_it(
    open_page: OpenPage,
) -> None:
    page = open_page("/ingest")
    press_start(page)
    # The socket does the same when it opens.
    page.evaluate(
        "document.getElementById('start-control').outerHTML += ''; htmx.process(document.body)"
    )
    with page.expect_response("**/ui/ingest/start"):
        page.mouse.up()


def test_a_press_is_kept_when_the_control_moves_away(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    press_start(page)
    move_start(page)  # what the socket brings may be higher than what it replaces
    with page.expect_response("**/ui/ingest/start"):
        page.mouse.up()


def test_a_press_that_leaves_the_control_is_none(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    page.evaluate("addEventListener('submit', () => (window.submitted = true), true)")
    press_start(page)
    move_start(page)
    page.mouse.move(5, 5)
    page.mouse.up()
    assert not page.evaluate("window.submitted")


def test_a_banner_does_not_move_what_is_pressed(open_page: OpenPage) -> None:
    page = open_page("/ingest")
    press_start(page)
    page.evaluate("htmx.trigger('#live', 'htmx:wsError')")
    # The banner would be there by now.
    page.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(done)))")
    with page.expect_response("**/ui/ingest/start"):
        page.mouse.up()
    expect(page.get_by_text("Realtime updates unavailable.")).to_be_visible()


def test_on_a_phone_roots_are_cards(open_page: OpenPage, make_repo: MakeRepo) -> None:
    folder = make_repo("dinghy-with-a-rather-long-name-that-must-wrap-somewhere")
    page = open_page("/ingest", size=PHONE)
    start(page, folder)
    card = row(page, folder.name)
    expect(card).to_contain_text("Completed", timeout=LONG_WAIT)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = card.bounding_box()
    assert box is not None and box["x"] + box["width"] <= PHONE[0]
    card.get_by_role("button", name="Details").click()
    expect(page.get_by_role("dialog", name=folder.name)).to_be_visible()
