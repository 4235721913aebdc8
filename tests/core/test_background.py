"""Processes that compute."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.core.concurrency.background import Background, ProcessLost
from apps.core.errors import InvalidInput
from apps.lookup.texts.patterns import Pattern

pytestmark = pytest.mark.door

NICE = 7


@pytest.fixture
def background() -> Iterator[Background]:
    process = Background("test", nice=NICE)
    yield process
    process.close()


def test_a_process_returns_results_and_errors_until_it_is_closed(background: Background) -> None:
    assert background.call(os.getppid) == os.getpid()
    first = background.call(os.getpid)
    with pytest.raises(InvalidInput):
        background.call(Pattern.compiled, Pattern("("))
    assert background.call(os.getpid) == first
    assert background.call(os.nice, 0) >= NICE
    background.close()
    with pytest.raises(ProcessLost):
        background.call(os.getpid)


def test_a_process_gives_way_to_other_sessions(background: Background) -> None:
    session = Path("/proc/self/autogroup")  # where Linux schedules sessions as groups
    if session.exists():
        assert background.call(session.read_text).endswith(f" nice {NICE}\n")


def test_a_process_that_is_killed_raises_and_is_not_started_again(background: Background) -> None:
    with pytest.raises(ProcessLost):
        background.call(os.kill, background.call(os.getpid), signal.SIGKILL)
    with pytest.raises(ProcessLost):
        background.call(os.getpid)


def test_a_process_gets_no_secrets(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEINFO_API_TOKEN", "secret")
    assert background.call(os.getenv, "CODEINFO_API_TOKEN") is None
