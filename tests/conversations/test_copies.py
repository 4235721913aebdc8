"""A copy of a conversation as others get it, on a page and as a file: what its text does there, and
which folders it names."""

import re
from collections.abc import Sequence

import pytest
from django.test import AsyncClient
from django.utils import timezone

from apps.browse.lexer_process import Tokens, lexers
from apps.conversations.models import Share
from apps.index.models import Root
from tests.conversations.copies import CITED, Elements, cited_answer, opened, share
from tests.conversations.pages import add_turn, answered, call, match, visible
from tests.support.chat import conversation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

EVIL = """<script>alert(1)</script><img src=x onerror=alert(1)> <b style="color:red">b</b>

[a](javascript:alert(1)) [b](file:///etc/passwd) [c](/ingest) [d](//evil.example/x)
[e](https://example.org/rules) ![f](https://evil.example/pixel.png)

```html
<script>alert(2)</script></style><iframe src="https://evil.example"></iframe>
```
"""


async def test_hostile_text_of_a_copy_does_nothing(async_client: AsyncClient) -> None:
    await conversation(title=EVIL[:200])
    hostile = match('"><script>alert(3)</script>.py', 1, repo="<b>r</b>", chunk=EVIL)
    answer = {"type": "text", "text": f'{EVIL}\n\nAnd `<b>r</b>/"><script>alert(3)</script>.py:1`.'}
    await add_turn("user", {"type": "text", "text": EVIL})
    await add_turn("assistant", call("Grep", {"results": [hostile]}), answer)
    page = await opened(async_client, await share(async_client))
    file = await async_client.get("/ui/chat/export?c=c1&format=html")
    for html in (page, file.content.decode()):
        elements = Elements(html)
        assert elements.tags.isdisjoint({"script", "iframe", "b", "form", "button", "object"})
        names = elements.values.keys()
        assert not [name for name in names if name == "style" or name.startswith(("on", "data-"))]
        assert "src" not in names
        hrefs = {one for one in elements.values["href"] if not one.startswith(("#", "/static/"))}
        # An image is a link, which nobody follows by looking.
        away = {"https://example.org/rules", "https://evil.example/pixel.png"}
        assert hrefs - {"?download=1"} == away


async def test_the_cited_lines_of_an_answer_are_bounded(async_client: AsyncClient) -> None:
    """Ranges of one long passage overlap. Those after the limit are listed without their lines."""
    await conversation()
    found = match("a.py", 1, chunk=("x" * 99 + "\n") * 2_000, endLine=2_000)
    ranges = " ".join(f"(`httpx/a.py:{first}-2000`)" for first in range(1, 41))
    await answered(call("ReadFile", {"results": [found]}), {"type": "text", "text": ranges})
    copy = await opened(async_client, await share(async_client))
    page = (await async_client.get("/chat?c=c1", headers={"accept": "text/html"})).content.decode()
    for html, shown in ((copy, '<pre class="code"'), (page, '<pre class="source__text"')):
        assert html.count(shown) == 3  # of 200,000 characters
        assert "40–2000" in html
    assert "Citations (40)" in visible(copy)


async def test_what_is_highlighted_together_is_bounded(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More would be highlighted too slowly, and be plain, and be in memory at once."""
    await conversation()
    code = ("# " + "x" * 97 + "\n") * 200
    for number in range(12):
        found = match(f"a{number}.py", 1, chunk=f"x = {number}\n{code}", endLine=200)
        cited = {"type": "text", "text": f"See httpx/a{number}.py:1-200."}
        await answered(call("Grep", {"results": [found]}), cited)
    together: list[int] = []
    all_tokens = lexers.all_tokens

    def recorded(texts: Sequence[tuple[str, str]]) -> Sequence[Tokens]:
        together.append(sum(len(text) for text, _ in texts))
        return all_tokens(texts)

    monkeypatch.setattr(lexers, "all_tokens", recorded)
    html = await opened(async_client, await share(async_client))
    assert html.count("Citations (1)") == 12
    assert sum(together) > 12 * 19_000
    assert max(together) < 120_000


async def test_folders_of_the_machine_are_the_names_of_their_repositories(
    async_client: AsyncClient,
) -> None:
    await Root.objects.acreate(
        name="shop", path="/srv/deep/shop", generation=1, last_ingest_at=timezone.now(), model="m"
    )
    await conversation(title="What does /srv/deep/shop/app.py do?")
    paths = "See /home/ada/httpx/httpx/_client.py:371 and `/srv/deep/shop/app.py`."
    await answered(call("VectorSearch", {"results": [CITED]}), {"type": "text", "text": paths})
    html = await opened(async_client, await share(async_client))
    assert "/home/ada" not in html and "/srv/deep" not in html
    assert "<code>shop/app.py</code>" in html and "_client.py:371</code>" in html


async def ingested(name: str, path: str) -> None:
    await Root.objects.acreate(
        name=name, path=path, generation=1, last_ingest_at=timezone.now(), model="m"
    )


async def test_the_end_of_an_address_or_of_a_path_is_no_folder_of_the_machine(
    async_client: AsyncClient,
) -> None:
    await ingested("shop", "/srv/deep")
    kept = "https://example.org/srv/deep/docs backend/srv/deep/x.py ./srv/deep ${ROOT}/srv/deep"
    named = "cc -I/srv/deep/include 看/srv/deep/a.py file:///srv/deep/b.py"
    await answered({"type": "text", "text": f"`{kept}` `{named}`"})
    text = visible(await opened(async_client, await share(async_client)))
    assert kept in text
    assert "cc -Ishop/include 看shop/a.py file://shop/b.py" in text


async def test_folders_that_only_results_name_are_the_names_of_their_repositories(
    async_client: AsyncClient,
) -> None:
    """The repositories have been removed since."""
    places = {"containerPath": "/data/gone", "hostPath": "/home/ada/gone"}
    row = match("a.py", 1, repo="old", hostPath="/home/b/old/a.py", containerPath="/data/old/a.py")
    odd = {"repos": [{"id": 1, "hostPath": "/home"}, {"id": "x", "hostPath": None}, "y"]}
    await answered(
        call("ListIngestedRepositories", {"repos": [{"id": "shop", **places}]}),
        call("Grep", {"results": [row]}),
        call("Other", odd),
        {"type": "text", "text": "`/home/ada/gone/x` `/data/gone` `/data/old/a.py` `/home/b/old`"},
    )
    text = visible(await opened(async_client, await share(async_client)))
    assert "shop/x shop old/a.py old" in text


async def test_a_title_that_was_cut_within_a_folder_does_not_name_it(
    async_client: AsyncClient,
) -> None:
    await ingested("shop", "/home/ada/customers/shop")
    await conversation(title=f"{'why ' * 16}/home/ada/customers/shop/app.py"[:80])
    await answered({"type": "text", "text": "So."})
    link = await share(async_client)
    assert "/home" not in await opened(async_client, link)
    for path in (link + "?download=1", "/ui/chat/export?c=c1&format=html"):
        response = await async_client.get(path)
        assert "ada" not in response.headers["Content-Disposition"] + visible(
            response.content.decode().partition("</style>")[2]
        )


async def test_names_of_repositories_do_not_make_a_title_too_long(
    async_client: AsyncClient,
) -> None:
    await ingested("the-name-of-a-repository", "/r")
    await conversation(title="/r " * 80)
    await answered({"type": "text", "text": "So."})
    await share(async_client)
    assert len((await Share.objects.aget()).title) == 255


async def test_a_long_answer_is_shared_as_it_is_shown(async_client: AsyncClient) -> None:
    await answered({"type": "text", "text": "A sentence of two megabytes. " * 70_000})
    html = await opened(async_client, await share(async_client))
    assert html.count("A sentence of two megabytes.") == 70_000
    await answered({"type": "text", "text": "A sentence of two megabytes. " * 70_000})
    await answered({"type": "text", "text": "A sentence of two megabytes. " * 70_000})
    refused = await async_client.post("/ui/chat/share", {"c": "c1"})
    assert "TOO_LONG_TO_SHARE" in refused.content.decode()


# The file


async def test_a_conversation_and_a_copy_are_files_that_request_nothing(
    async_client: AsyncClient,
) -> None:
    await cited_answer()
    link = await share(async_client)
    for path in ("/ui/chat/export?c=c1&format=html", f"{link}?download=1"):
        response = await async_client.get(path)
        headers = response.headers
        assert headers["Content-Disposition"] == 'attachment; filename="Which-timeout-wins.html"'
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        html = response.content.decode()
        assert "371 def at_371 (): 372 return 371" in visible(html)
        elements = Elements(html)
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
        assert policy in elements.values["content"]
        assert elements.tags.isdisjoint({"script", "link", "img", "button", "form"})
        assert elements.values["href"] == {"#c1-1"}
        sheet = html.partition("<style>")[2].partition("</style>")[0]
        assert ".code .line" in sheet and "@import" not in sheet
        assert not re.findall(r"url\((?!\"data:)", sheet)
        assert link not in html and "expires" not in visible(html.partition("</style>")[2])


@pytest.mark.parametrize(
    ("title", "name"),
    [("日本語", "conversation"), ("...", "conversation"), ("日本語 of .env", "of-.env")],
)
async def test_a_file_has_a_name_whatever_the_title_is(
    async_client: AsyncClient, title: str, name: str
) -> None:
    await conversation(title=title)
    await answered({"type": "text", "text": "So."})
    for kind in ("html", "md"):
        response = await async_client.get(f"/ui/chat/export?c=c1&format={kind}")
        assert response.headers["Content-Disposition"] == f'attachment; filename="{name}.{kind}"'
