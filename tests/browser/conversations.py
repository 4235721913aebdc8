"""Conversations that a test makes and removes."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect


@contextmanager
def only_listed(page: Page, *titles: str) -> Iterator[None]:
    """Make conversations whose titles begin with the same word, and narrow the list to them."""
    ids = [made(page, title) for title in titles]
    page.get_by_label("Search conversations").fill(titles[0].split()[0])
    expect(page.locator("#convos [data-row]")).to_have_count(len(titles))
    yield
    remove(page, ids)


def made(page: Page, title: str) -> str:
    body = {"provider": "builtin", "model": "search", "title": title}
    return str(page.request.post("/conversations", data=body).json()["conversationId"])


def remove(page: Page, ids: list[str]) -> None:
    """Those that are left of them."""
    listed = page.request.get("/conversations?state=all&limit=100").json()["items"]
    left = [one["conversationId"] for one in listed if one["conversationId"] in ids]
    for verb in ("archive", "delete"):
        done = page.request.post(f"/conversations/bulk/{verb}", data={"conversationIds": left})
        assert done.status == 200
