"""Reads pages of the code browser, as the test client gets them."""

import re
from html import unescape

from django.test import Client


def get(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status, response.content[:2000]
    return response.content.decode()


def text(html: str) -> str:
    body = html.partition("<main")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def link(html: str, name: str) -> str:
    match = re.search(rf'<a[^>]*href="([^"]*)"[^>]*>{re.escape(name)}</a>', html)
    assert match, name
    return unescape(match[1])
