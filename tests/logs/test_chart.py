"""The chart above the lines of the Logs page."""

import re
from html import unescape

import pytest
from django.test import Client

from apps.logs.store import LogStore
from tests.support.entries import entry

pytestmark = pytest.mark.django_db


def titles(html: str) -> list[str]:
    return [unescape(title) for title in re.findall("<g><title>([^<]*)</title>", html)]


def test_lines_are_columns_over_time_by_level(client: Client, store: LogStore) -> None:
    for minute in (0, 0, 0, 20, 39):
        store.add(entry(timestamp=f"2026-01-02T03:{minute:02}:00.000Z"))
    store.add(entry("bad", level="error", timestamp="2026-01-02T03:39:59.999Z"))
    html = client.get("/ui/logs/list").content.decode()
    assert 'aria-label="02 Jan 03:00:00 to 02 Jan 03:39:59 UTC: 6 lines, 1 error"' in html
    shown = titles(html)
    assert len(shown) == 40
    assert shown[0] == "02 Jan 03:00:00 UTC: 3 lines"
    assert shown[39] == "02 Jan 03:39:00 UTC: 2 lines, 1 error"
    assert html.count('class="chart__info"') == 3 and html.count('class="chart__error"') == 1
    assert "style=" not in html


def test_the_chart_has_the_lines_that_the_filter_leaves(client: Client, store: LogStore) -> None:
    for number in range(600):
        store.add(entry(f"line {number % 2}", timestamp=f"2026-01-02T03:{number % 60:02}:00.000Z"))
    html = client.get("/ui/logs/list?text=line+1").content.decode()
    assert ": 300 lines" in html
    assert "<svg" not in client.get("/ui/logs/list?text=nowhere").content.decode()


def test_the_chart_alone_has_the_same_filter(client: Client, store: LogStore) -> None:
    for number in range(6):
        store.add(entry(f"line {number % 2}"))
    html = client.get("/ui/logs/list?text=line+1").content.decode()
    assert 'hx-get="/ui/logs/chart?text=line+1"' in html
    html = client.get("/ui/logs/chart?text=line+1").content.decode()
    assert ": 3 lines" in html and "<table" not in html


def test_one_line_and_equal_times_need_no_scale(client: Client, store: LogStore) -> None:
    store.add(entry())
    assert 'class="chart"' not in client.get("/ui/logs/list").content.decode()
    store.add(entry())
    assert titles(client.get("/ui/logs/list").content.decode())[0].endswith("2 lines")
