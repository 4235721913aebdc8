"""The chart of the last runs on the Ingest page."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.ingest.pages import make_run

pytestmark = pytest.mark.django_db


def run(seconds: float, age: int, **fields: object) -> None:
    ended = timezone.now() - timedelta(minutes=age)
    make_run(started_at=ended - timedelta(seconds=seconds), finished_at=ended, **fields)


def test_the_last_runs_are_columns_by_their_seconds_and_ends(client: Client) -> None:
    run(2, 1, state="completed", name="<b>redis</b>")
    assert 'class="chart"' not in client.get("/ingest").content.decode()
    run(4, 3, state="error", last_error="gone", name="flask")
    run(1, 2, state="cancelled")
    run(9, 0, state="completed", operation="remove")
    html = client.get("/ingest").content.decode()
    assert "Seconds of the last 3 runs, 1 of them failed" in html
    titles = re.findall("<g><title>([^<]*)</title>", html)
    assert titles == [
        "flask: error, 4.0 s",
        "redis: cancelled, 1.0 s",
        "&lt;b&gt;redis&lt;/b&gt;: completed, 2.0 s",
    ]
    heights = re.findall(r'class="chart__(\w+)"[^>]* height="(\d+)"', html)
    columns = [column for column in heights if column[0] != "room"]
    assert columns == [("error", "48"), ("other", "12"), ("completed", "24")]


def test_a_run_in_progress_hides_the_chart(client: Client) -> None:
    run(2, 1, state="completed")
    run(2, 2, state="completed")
    assert 'class="chart"' in client.get("/ingest").content.decode()
    make_run(state="embedding", slot="running", started_at=timezone.now())
    assert 'class="chart"' not in client.get("/ingest").content.decode()
