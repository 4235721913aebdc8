"""A conversation to share, its copy, and what stands in one."""

import re
from html.parser import HTMLParser

from django.test import AsyncClient

from tests.conversations.pages import answered, call, match
from tests.support.chat import conversation

HTML = {"accept": "text/html", "accept-encoding": "gzip"}
CITED = match("httpx/_client.py", 371)
UNCITED = match("httpx/_secrets.py", 5, chunk="def uncited(): pass")
ANSWER = {"type": "text", "text": "The request wins (`httpx/httpx/_client.py:371-372`)."}
THOUGHT = {"type": "reasoning", "text": "I look into the attic.", "seconds": 2.1}


class Elements(HTMLParser):
    """The tags of a document, and the values of its attributes by name."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.values: dict[str, set[str]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.values.setdefault(name, set()).add(value or "")


async def cited_answer() -> None:
    """An answer that cites one of two results, after a thought."""
    await conversation(title="Which timeout wins?", flags={"scope": ["secret-scope"]})
    search = call("VectorSearch", {"results": [CITED, UNCITED]}, query="the words of a search")
    await answered(THOUGHT, search, ANSWER)


async def share(client: AsyncClient, conversation_id: str = "c1") -> str:
    """Share a conversation. Returns the path of the link."""
    response = await client.post("/ui/chat/share", {"c": conversation_id})
    assert response.status_code == 200, response.content
    assert "no-store" in response.headers["Cache-Control"]
    links = re.findall(
        r'value="http://testserver(/shared/[0-9a-f]{32})"', response.content.decode()
    )
    assert len(links) == 1
    return str(links[0])


async def opened(client: AsyncClient, path: str) -> str:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200
    return str(response.content.decode())
