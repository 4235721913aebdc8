"""The Logs page goes back through the log by 50 lines."""

import re
from html import unescape

import pytest
from django.test import Client

from apps.logs.store import LogStore
from tests.support.entries import entry

HTML = {"accept": "text/html"}


def lines(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tbody id="log-(\d+)" data-entry', page)]


def older(page: str) -> str:
    """The address of the older lines; "" if there are none."""
    address, hidden = re.findall(r'href="([^"]*)" rel="next" data-log-older( hidden)?', page)[0]
    return "" if hidden else unescape(address)


@pytest.mark.django_db
def test_it_shows_50_lines_and_the_way_to_older_ones(client: Client, store: LogStore) -> None:
    for number in range(240):
        store.add(entry(f"ferry {number}" if number % 2 else f"crane {number}"))
    seen, address = [], "/logs?text=ferry"
    while address:
        answer = client.get(address, headers=HTML)
        assert len(answer.content) < 200_000
        page = answer.content.decode()
        seen.append(lines(page))
        assert ("Newest lines" in page) == (len(seen) > 1)
        assert ("sse-connect" in page) == (len(seen) == 1)
        address = older(page)
    assert [len(numbers) for numbers in seen] == [50, 50, 20]
    assert sum(seen, []) == list(range(240, 0, -2))


@pytest.mark.django_db
def test_before_the_first_line_it_says_so(client: Client, store: LogStore) -> None:
    store.add(entry("first"))
    page = client.get("/logs?before=1", headers=HTML).content.decode()
    assert lines(page) == [] and "No older lines." in page


def test_a_place_that_is_no_number_is_refused(client: Client, store: LogStore) -> None:
    answer = client.get("/ui/logs/list?before=x")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_QUERY")
