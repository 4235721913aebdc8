"""GET /ui/palette: what the command palette finds."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.conversations import searching, services
from apps.conversations.models import Conversation
from apps.core.errors import Unavailable
from apps.core.principal import Principal, acting_as
from apps.site import palette
from tests.support.ingested import SAMPLE, ingested_once

pytestmark = [pytest.mark.door, pytest.mark.django_db]
DOCS = {"docs/retry guide.md": "# Trying again\n\nAbout retries.\n", "lib/retrying.py": "x = 1\n"}


@pytest.fixture(scope="module")
def index(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The repositories `lighthouse` and `retry-docs`."""
    base = Path(tmp_path_factory.mktemp("palette")).resolve()
    with ingested_once(django_db_blocker, base, {"retry-docs": DOCS, "lighthouse": SAMPLE}):
        yield base


def get(client: Client, q: str, **params: str) -> str:
    response = client.get("/ui/palette", {"q": q, **params})
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html))).strip()


def groups(html: str) -> dict[str, list[tuple[str, str]]]:
    """The URL and the text of each option, by the title of its group."""
    parts = html.split('role="group" aria-label="')[1:]
    option = re.compile(r'<a role="option"[^>]*href="([^"]+)"[^>]*>(.*?)</a>', re.DOTALL)
    return {
        part.partition('"')[0]: [(unescape(url), text(body)) for url, body in option.findall(part)]
        for part in parts
    }


def titles(html: str, group: str) -> list[str]:
    return [body for _, body in groups(html).get(group, [])]


def test_each_kind_is_found_and_leads_to_its_place(client: Client, index: Path) -> None:
    made = services.create(provider="builtin", model="search", title="Why retry?")
    found = groups(get(client, "retry"))
    assert found["Repositories"] == [("/code/retry-docs", "retry-docs")]
    assert [body for _, body in found["Files"]] == [
        "docs/retry guide.md retry-docs",
        "lib/retrying.py retry-docs",
        "src/retry.py lighthouse",
    ]
    assert "/code/lighthouse/src/retry.py" in found["Files"][2][0]
    assert found["Symbols"][0][1] == "RetryPolicy class · lighthouse/src/retry.py:11"
    assert "lines=11" in found["Symbols"][0][0]
    assert found["Conversations"] == [(f"/chat?c={made.id}", "Why retry?")]
    assert (
        "src/retry.py:17 lighthouse · RetryPolicy.should_retry def should_ retry "
        "(self, attempt: int) -> bool:"
    ) in [b for _, b in found["Lines with exactly this"]]
    assert "Ask “retry”" in text(get(client, "retry"))


def test_lines_by_meaning_come_with_a_second_request(client: Client, index: Path) -> None:
    html = get(client, "how long to wait before trying again")
    assert "Lines by meaning" not in html
    (url,) = re.findall(r'hx-get="([^"]+)"', html)
    found = groups(client.get(unescape(url)).content.decode())
    assert any(
        "src/retry.py" in url or "retry.py" in body for url, body in found["Lines by meaning"]
    )
    assert "Lines by meaning" not in get(client, "zebra crossing quantum", part="meaning")


def test_symbols_match_by_their_beginning_and_their_scope(client: Client, index: Path) -> None:
    assert titles(get(client, "backoff_"), "Symbols")[0].startswith("backoff_delay function")
    assert titles(get(client, "RETRYP"), "Symbols")[0].startswith("RetryPolicy class")
    assert titles(get(client, "RetryPolicy.should"), "Symbols")[0].startswith(
        "RetryPolicy.should_retry"
    )
    assert titles(get(client, "Other.should"), "Symbols") == []


def test_files_match_by_all_words_in_any_case(client: Client, index: Path) -> None:
    assert titles(get(client, "GUIDE docs"), "Files") == ["docs/retry guide.md retry-docs"]
    assert titles(get(client, "src\\retry"), "Files") == ["src/retry.py lighthouse"]
    for odd in ("100%", "[", "]", "^", "a*b", "(", "$", "é", "..."):
        assert titles(get(client, odd), "Files") == []


@pytest.mark.parametrize(
    ("typed", "lines", "shown"),
    [
        ("retry.py:17", "17", "src/retry.py:17"),
        ("src/retry.py:6-8", "6-8", "src/retry.py:6-8"),
        ("retry.py:17:5:", "17", "src/retry.py:17:5:"),
        ("retry.py:17-5", "17", "src/retry.py:17-5"),
        ("retry.py:17-0", "17", "src/retry.py:17-0"),
    ],
)
def test_a_file_is_opened_at_a_line(
    client: Client, index: Path, typed: str, lines: str, shown: str
) -> None:
    (url, title), *_ = groups(get(client, typed))["Files"]
    assert url.endswith(f"/code/lighthouse/src/retry.py?lines={lines}")
    assert title.startswith(shown)


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("sr/retr .py", "src/retry.py lighthouse"),
        ("rc/retry py", "src/retry.py lighthouse"),
        ("lib/rytrying.py", "lib/retrying.py retry-docs"),
        ("retyring", "lib/retrying.py retry-docs"),
        ("RETRIYNG.py:1", "lib/retrying.py:1 retry-docs"),
        ("doc/retry gude.md", "docs/retry guide.md retry-docs"),
    ],
)
def test_files_are_found_by_fragments_and_sloppy_spelling(
    client: Client, index: Path, typed: str, path: str
) -> None:
    assert titles(get(client, typed), "Files")[0] == path


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("RetryPolcy", "RetryPolicy class"),
        ("retyrpolicy", "RetryPolicy class"),
        ("backof_delay", "backoff_delay function"),
        ("bakcoff_dleay", "backoff_delay function"),
        ("RetryPolcy.shoud_retry", "RetryPolicy.should_retry method"),
        ("RetryPolcy.should_retry", "RetryPolicy.should_retry method"),
    ],
)
def test_symbols_are_found_by_sloppy_spelling(
    client: Client, index: Path, typed: str, title: str
) -> None:
    assert titles(get(client, typed), "Symbols")[0].startswith(title)


@pytest.mark.parametrize(
    "typed",
    ["zzzzzz", "Other.shoud_retry", "backof delay", "polici" * 30, "öäüß", "....", "Instal"],
)
def test_what_is_spelled_like_no_definition_is_no_symbol(
    client: Client, index: Path, typed: str
) -> None:
    assert titles(get(client, typed), "Symbols") == []


def test_a_symbol_comes_before_files_that_are_spelled_like_it(client: Client, index: Path) -> None:
    assert list(groups(get(client, "RetryPolicy")))[0] == "Symbols"


def test_a_sentence_is_no_misspelled_file(client: Client, index: Path) -> None:
    spellings = ["retriyng", "retyring", "rettying", "retryinng", "retriying", "rretrying"]
    assert titles(get(client, " ".join(spellings)), "Files") == ["lib/retrying.py retry-docs"]
    spellings += ["retryign", "rtrying", "retryng"]
    assert titles(get(client, " ".join(spellings)), "Files") == []


def test_words_of_a_conversation_are_found_and_shown(client: Client) -> None:
    made = services.create(provider="builtin", model="search", title="Ships")
    fields = {"provider": "builtin", "model": "search", "role": "user", "status": "ok"}
    parts = [{"type": "text", "text": "Where is the anchor <kept>?"}]
    services.append_turn(made.id, parts=parts, **fields)
    html = get(client, "anchor")
    assert titles(html, "Conversations") == ["Ships Where is the anchor <kept>?"]
    assert "<mark>anchor</mark> &lt;kept&gt;" in html
    services.archive(made.id)
    assert titles(get(client, "anchor"), "Conversations")[0].startswith("Ships archived")


def test_conversations_of_others_are_not_found(client: Client) -> None:
    ada = get_user_model().objects.create_user("ada")
    Conversation.objects.create(id="hers", provider="p", model="m", title="Hers", owner=ada)
    Conversation.objects.create(id="other", provider="p", model="m", title="Hers not")
    with acting_as(Principal("user", ada.pk)):
        found = palette.find("hers")["groups"]
    assert [option.title for group in found for option in group.options] == ["Hers"]


def test_without_an_index_and_without_matches_there_are_no_groups(client: Client) -> None:
    html = get(client, "nothing has this")
    assert list(groups(html)) == ["With these words"]
    assert "data-missing" not in html
    assert get(client, " ") == ""
    assert text(get(client, "nothing has this", part="meaning")) == ""


def test_a_failed_group_is_named_and_the_others_answer(
    client: Client, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(searching, "having", away)
    html = get(client, "retry")
    assert 'data-missing="conversations"' in html
    assert "Files" in groups(html)

    def lost(*_: object) -> None:
        raise Unavailable("no embedder")

    monkeypatch.setattr(palette, "search", lost)
    assert 'data-missing="lines by meaning"' in get(client, "retry", part="meaning")


def test_what_takes_too_long_is_left_out(
    client: Client, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(palette, "SECONDS", -1)
    html = get(client, "retry")
    assert 'data-missing="repositories, files, symbols, conversations, lines with exactly' in html


def test_a_group_and_a_text_are_bounded(client: Client) -> None:
    for number in range(20):
        services.create(provider="p", model="m", title=f"Anchor {number}")
    assert len(titles(get(client, "anchor"), "Conversations")) == palette.LIMIT
    assert f"“{'x' * palette.MAX_TEXT}”" in text(get(client, "x" * 5000))
    assert "“a b”" in text(get(client, "a\0b"))


def test_the_queries_do_not_grow_with_what_is_found(client: Client, index: Path) -> None:
    counts = []
    for number in (1, palette.LIMIT):
        for n in range(number):
            made = services.create(provider="p", model="m", title=f"Question {number} {n}")
            fields = {"provider": "p", "model": "m", "role": "user", "status": "ok"}
            services.append_turn(made.id, parts=[{"type": "text", "text": "retry"}], **fields)
        with CaptureQueriesContext(connection) as queries:
            html = get(client, "retry")
        counts.append(len(queries))
    assert len(titles(html, "Conversations")) == palette.LIMIT
    assert counts[0] == counts[1] <= 25
