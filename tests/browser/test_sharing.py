"""Links to copies of a conversation, and the copy as a file, in a browser."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import objections
from tests.browser.chat import ask, done
from tests.browser.chromium import PHONE, Complaints, clipboard, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.narrow import NARROW, sideways
from tests.browser.product import Product
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

pytestmark = pytest.mark.usefixtures("repository")

HOSTILE = """\
<script>window.ran = 1</script><img src=x onerror="window.ran = 1"><svg onload="window.ran = 1">
<iframe srcdoc="<script>parent.ran = 1</script>"></iframe><base href="//evil.example/"><style>*{}
<meta http-equiv="refresh" content="0;url=javascript:window.ran=1"><form action="//evil.example">
[a](javascript:window.ran=1) [b](<data:text/html,x>) ![c](https://evil.example/x "\" onload=\"x")

```html" onmouseover="window.ran=1
</code></pre></style><script>window.ran = 1</script>
```

| <img src=x onerror=window.ran=1> | after all of it |
| - | - |
"""
# Attributes that run something, and links that do.
ATTRIBUTES = """() => [...document.querySelectorAll("*")].flatMap((e) => [...e.attributes])
  .filter(({ name, value }) => name.startsWith("on") || /^\\s*(javascript|data):/i.test(value))
  .map(({ name, value }) => `${name}=${value}`)"""
MISSING = "This link opens nothing"
# What a browser says of the page of a link that opens nothing.
NOT_THERE = "status of 404"


@pytest.fixture
def page(open_page: OpenPage, product: Product) -> Iterator[Page]:
    """The chat page with an answer that cites a file. Its links are removed after the test."""
    page = open_page("/chat")
    ask(page)
    done(page)
    yield page
    write(product, "DELETE FROM conversations_share")


def write(product: Product, statement: str) -> None:
    with closing(sqlite3.connect(product.data / "codeinfo.sqlite3")) as database:
        database.execute(statement)
        database.commit()


def share_dialog(page: Page) -> Locator:
    page.locator("#more-actions").click()
    page.get_by_role("button", name="Share…").click()
    dialog = page.get_by_role("dialog", name="Share this conversation")
    expect(dialog.get_by_role("button", name="Make a link")).to_be_focused()
    return dialog


def made_link(dialog: Locator) -> str:
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    return dialog.get_by_label("Link (shown only once)").input_value()


def test_a_link_is_made_copied_opened_by_another_and_revoked(
    page: Page, open_page: OpenPage, complaints: Complaints
) -> None:
    dialog = share_dialog(page)
    link = made_link(dialog)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Link copied")).to_be_visible()
    assert clipboard(page) == link
    assert objections(page) == []

    reader = open_page(link)
    expect(reader.get_by_role("heading", level=1)).to_have_text(
        page.locator("#chat-title").inner_text()
    )
    expect(reader.locator(".prose")).to_contain_text("Sentence 1 of a slow answer.")
    expect(reader.locator(".passages .line").first).to_be_visible()
    expect(reader.get_by_text("VectorSearch")).to_have_count(0)
    reader.locator(".prose a.cite").first.click()
    expect(reader).to_have_url(re.compile("#c1-1$"))
    expect(reader.locator(".passages > li:target")).to_be_in_viewport()
    expect(reader.locator("script, button, form")).to_have_count(0)
    assert objections(reader) == []

    dialog.get_by_role("button", name="Close").click()
    share_dialog(page)
    expect(dialog.get_by_label("Link (shown only once)")).to_have_count(0)
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog.get_by_role("button", name="Revoke")).to_have_count(0)
    complaints.expected.append(NOT_THERE)
    load_again(reader)
    expect(reader.get_by_role("heading", level=1)).to_have_text(MISSING)
    assert objections(reader) == []


def test_an_expired_link_opens_nothing(
    page: Page, product: Product, complaints: Complaints
) -> None:
    link = made_link(share_dialog(page))
    write(product, "UPDATE conversations_share SET expires_at = '2026-01-01 00:00:00'")
    complaints.expected.append(NOT_THERE)
    go(page, link)
    expect(page.get_by_role("heading", level=1)).to_have_text(MISSING)


def test_a_copy_fits_a_phone_in_the_dark(page: Page, open_page: OpenPage) -> None:
    link = made_link(share_dialog(page))
    for size in (PHONE, NARROW):
        reader = open_page(link, size=size, dark=True)
        assert sideways(reader) == 0
        assert objections(reader, colours_only=True) == []
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    assert sideways(page) == 0


def test_nothing_of_a_hostile_conversation_runs_in_its_file(
    open_page: OpenPage, model: OpenAIStandIn, tmp_path: Path
) -> None:
    """Also without the content policy that the file has: it must have nothing to run."""
    model.scripts["plain"] = Script([[*say(HOSTILE), *end()]])
    page = open_page("/chat")
    ask(page, HOSTILE, model="plain")
    done(page)
    page.locator("#more-actions").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as HTML").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    html, policies = re.subn("<meta http-equiv[^>]*>", "", file.read_text(), count=1)
    assert policies == 1
    file.write_text(html)
    go(page, "about:blank")  # The chat page asks for its list when an answer has ended.
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    go(page, file.as_uri())
    expect(page.locator(".prose")).to_contain_text("after all of it")
    assert page.evaluate("window.ran") is None
    assert page.evaluate(ATTRIBUTES) == []
    active = "script, iframe, object, embed, form, base, meta[http-equiv]"
    expect(page.locator(active)).to_have_count(0)
    assert requested == [file.as_uri()]


def test_a_copy_is_a_file_that_opens_without_a_server(page: Page, tmp_path: Path) -> None:
    go(page, made_link(share_dialog(page)))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as HTML").click()
    file = tmp_path / download.value.suggested_filename
    assert file.suffix == ".html"
    download.value.save_as(file)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    go(page, file.as_uri())
    line = page.locator(".passages .line").first
    expect(line).to_be_visible()
    # The stylesheet within applies.
    assert line.evaluate("line => getComputedStyle(line).whiteSpace") == "pre"
    assert page.locator(".passages .code [class='k']").first.evaluate(
        "word => getComputedStyle(word).color !== getComputedStyle(document.body).color"
    )
    page.locator(".prose a.cite").first.click()
    expect(page.locator(".passages > li:target")).to_be_in_viewport()
    expect(page.locator("script")).to_have_count(0)
    assert {url.partition("#")[0] for url in requested} == {file.as_uri()}
    assert objections(page) == []
