"""Conversations that a test makes and removes."""

from playwright.sync_api import Page


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
