"""Every page in every state: links look like links, nothing is said twice, nothing overflows, and
axe has no finding."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from apps.core.security.menu import PAGES
from tests.browser.axe import objections
from tests.browser.drawn_pages import DRAWN
from tests.browser.gallery import Gallery, gallery, opened, show
from tests.browser.narrow import OVERLAPS
from tests.browser.product import HOME
from tests.browser.states import STATES, as_it_opens

# Each width and each theme once: axe looks at all of a page in both.
VARIANTS = ((1280, False), (320, True))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Gallery]:
    with gallery(tmp_path_factory.mktemp("gallery"), browser) as made:
        yield made


# Visible links and buttons that look like the text around them. A link in running text needs more
# than a colour; one that stands alone, and a button, need something.
UNMARKED = """() => {
  const clear = (colour) => colour === "transparent" || /, 0\\)$|\\/ 0\\)$/.test(colour);
  const style = (e) => getComputedStyle(e);
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const layer = document.querySelector("dialog[open], .drawer.is-open") ?? document;
  const blockOf = (e) => {
    let block = e.parentElement;
    while (style(block).display === "inline") block = block.parentElement;
    return block;
  };
  // The text of a block outside its controls, if the control is in a line with it.
  const around = (e) => {
    const block = blockOf(e);
    if (/flex|grid/.test(style(block).display)) return "";
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    let text = "";
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (parent.closest("a, button, .sr-only") || !shown(parent)) continue;
      let own = parent;
      while (own !== block && style(own).display === "inline") own = own.parentElement;
      if (own === block) text += walker.currentNode.data;
    }
    return text.replace(/[^\\p{L}\\p{N}]/gu, "");
  };
  const underlined = (e) => [e, ...e.querySelectorAll("*")]
    .some((part) => style(part).textDecorationLine.includes("underline"));
  const boxed = (e) => {
    const own = style(e);
    const line = (side) =>
      own[`border${side}Width`] !== "0px" && !clear(own[`border${side}Color`]);
    return !clear(own.backgroundColor) || line("Top") || line("Bottom");
  };
  const drawn = (e) => e.querySelector("svg, img, canvas, rect")
    || [e, ...e.querySelectorAll("*")].some((part) => part.matches(".btn--copy"));
  const coloured = (e) => style(e).color !== style(e.parentElement).color;
  // Lists and tables of nothing but links, whose rows are marked under the pointer.
  const rows = ".nav, .menu, .tree, .crumbs, .outline, .convo-row, .sidebar__scroll, .tabs, "
    + ".viewer__code, .names__list, .facet__values, .uses, .picker__list, .code, .brand, "
    + ".skip-link, .tfile, .source-row, .cite, .tmatch, #header";
  const found = [];
  for (const e of layer.querySelectorAll("a[href], button")) {
    if (!shown(e) || e.closest(".sr-only") || e.closest(rows)) continue;
    const box = e.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const running = around(e) !== "";
    const marked = underlined(e) || boxed(e)
      || (!running && (drawn(e) || (e.tagName === "A" && coloured(e))));
    if (!marked) found.push(`${running ? "in text" : "alone"}: ${e.outerHTML.slice(0, 160)}`);
  }
  return found;
}"""

# The visible sentences of a page by their number, without code, data and names that people gave.
SENTENCES = """() => {
  const style = (e) => getComputedStyle(e);
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const layer = document.querySelector("dialog[open], .drawer.is-open") ?? document.body;
  const apart = "pre, code, script, style, svg, option, textarea, template, .sr-only, .mono, "
    + ".path, .convo, .topbar__title, [data-question], .shared__question, .prose, .example, "
    + ".table--logs";
  const blocks = new Map();
  const walker = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest(apart) || !shown(parent)) continue;
    let block = parent;
    while (style(block).display === "inline") block = block.parentElement;
    blocks.set(block, (blocks.get(block) ?? "") + walker.currentNode.data);
  }
  const said = new Map();
  for (const text of blocks.values())
    for (const sentence of text.replace(/\\s+/g, " ").split(/(?<=[.!?:…]) /)) {
      const words = sentence.match(/[\\p{L}\\p{N}][\\p{L}\\p{N}'’.-]*/gu) ?? [];
      const plain = words.join(" ").replace(/[.]+$/, "").toLowerCase();
      if (words.length > 4) said.set(plain, (said.get(plain) ?? 0) + 1);
    }
  return Object.fromEntries([...said].filter(([, times]) => times > 1));
}"""


# What can be scrolled to the side, and should not.
SIDEWAYS = """() => [document.documentElement, ...document.querySelectorAll(
    ".page, .transcript, .dialog__body, .drawer__body, .sidebar__scroll, .chart__view")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.className || e.tagName)"""

# Hints in empty fields that are wider than their field.
CLIPPED = """() => [...document.querySelectorAll("[placeholder]:placeholder-shown")]
  .filter((field) => {
    if (!field.checkVisibility()) return false;
    const style = getComputedStyle(field);
    const hint = document.createElement("span");
    hint.textContent = field.placeholder;
    hint.style.cssText = "position: absolute; visibility: hidden; white-space: pre";
    for (const name of ["fontFamily", "fontSize", "fontWeight", "letterSpacing"])
      hint.style[name] = style[name];
    document.body.append(hint);
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const isClipped = hint.getBoundingClientRect().width > room;
    hint.remove();
    return isClipped;
  })
  .map((field) => field.placeholder)"""

# Names of files in the heads of the viewer and of quotations that are wider than their room, and
# facts below an answer that begin a line elsewhere than the first of them.
MISPLACED = """() => {
  const shown = (e) => e.checkVisibility();
  const left = (e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    return Math.round(range.getBoundingClientRect().left);
  };
  const cut = [...document.querySelectorAll(":is(.viewer__head, .snippet__head) > .path")]
    .filter((e) => shown(e) && e.scrollWidth > e.clientWidth + 1);
  const begins = (e) => !e.previousElementSibling
    || e.offsetTop >= e.previousElementSibling.offsetTop + e.previousElementSibling.offsetHeight;
  const facts = [...document.querySelectorAll(".meta")].filter(shown).flatMap((meta) => {
    const all = [...meta.querySelectorAll(":scope > span:not(.versions)")].filter(begins);
    return all.filter((e) => left(e) !== left(all[0]));
  });
  return [...cut, ...facts].map((e) => e.outerHTML.slice(0, 160));
}"""


@pytest.mark.parametrize("name", STATES)
def test_a_page_is_plain_and_complete(servers: Gallery, name: str) -> None:
    with opened(servers, STATES[name]) as page:
        for width, dark in VARIANTS:
            show(page, width, dark=dark)
            assert page.evaluate(SENTENCES) == {}
            assert page.evaluate(UNMARKED) == []
            assert page.evaluate(SIDEWAYS) == []
            assert page.evaluate(CLIPPED) == []
            assert page.evaluate(MISPLACED) == []
            assert objections(page) == []
            if width == 320 and STATES[name].reach is as_it_opens:
                assert page.evaluate(OVERLAPS) == []


def test_each_page_of_the_menu_is_drawn() -> None:
    assert {page.path for page in PAGES} <= {state.path for state in STATES.values()}


def test_a_document_has_a_sentence_on_each_state() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| \S", (HOME / "docs/gallery.md").read_text(), re.M)
    assert sorted(rows) == sorted([*STATES, *DRAWN])


def test_the_menu_of_a_phone_has_nothing_that_axe_finds_wrong(servers: Gallery) -> None:
    with opened(servers, STATES["home"]) as page:
        show(page, 390, dark=True)
        page.get_by_role("link", name="Open menu").click()
        expect(page.locator("#sidebar")).to_be_visible()
        assert objections(page) == []


def test_the_preview_of_a_wide_search_begins_below_its_head(servers: Gallery) -> None:
    with opened(servers, STATES["search"]) as page:
        show(page, 1600, dark=False)
        preview = page.locator(".viewer--preview")
        expect(preview.locator(".viewer__find")).to_be_visible()
        box = preview.locator(".viewer__find").bounding_box()
        assert box is not None and box["height"] < 50


def test_the_buttons_of_an_answer_cover_none_of_its_figures(servers: Gallery) -> None:
    with opened(servers, STATES["agents-answer"]) as page:
        show(page, 320, dark=False)
        actions = page.locator(".answer__actions").bounding_box()
        assert actions is not None
        for figure in page.locator(".answer__foot .meta > *").all():
            box = figure.bounding_box()
            assert box is not None
            is_left = box["x"] + box["width"] <= actions["x"]
            assert is_left or box["y"] >= actions["y"] + actions["height"]


def test_a_message_of_a_server_ends_as_a_sentence(servers: Gallery) -> None:
    with opened(servers, STATES["chat-failed"]) as page:
        banner = page.locator(".turn .banner strong")
        expect(banner).to_have_text("The server failed: the engine fell over.")


@pytest.mark.parametrize(
    ("path", "code"),
    [("/etc", "outside"), ("{repos}/nowhere", "missing"), ("{repos}/file", "file"), ("", "blank")],
)
def test_errors_of_the_ingest_form_name_the_allowed_folders(
    servers: Gallery, path: str, code: str
) -> None:
    product = servers.server("new")
    (product.repos / "file").write_text("no folder\n")
    with opened(servers, STATES["new-ingest"]) as page:
        page.get_by_label("Folder path").fill(path.format(repos=product.repos))
        page.get_by_label("Display name").fill("lost")
        page.get_by_role("button", name="Start ingest").click()
        expect(page.get_by_label("Folder path")).to_have_attribute("aria-invalid", "true")
        field = page.locator(".field").filter(has=page.locator("#path"))
        expect(field).to_contain_text(f"beneath {Path(product.repos).resolve()}")
