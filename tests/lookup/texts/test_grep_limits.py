"""Patterns that take too long, or would: Grep ends at its limit and says so."""

import os
import random
import re
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core.concurrency import computed
from apps.index.grams import required_by
from apps.lookup.texts import finding
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post"]

pytestmark = [pytest.mark.door, pytest.mark.django_db]

LIMIT = 0.3
# However busy the machine is. Without a limit it is minutes.
OVER = 60.0
BYTES = 990_000
ATOMS = ("[ab_ c]", "(?:a|b)", ".", r"\w", r"[^\n]", r"(?:.a|b.)", "[a-c ]", r"(?:a.{0,9}b)")


def text(seed: int, width: int) -> str:
    """Lines of `width` characters that patterns nearly match."""
    chance = random.Random(seed)
    letters = "".join(chance.choices("ab_ c(){}=x1", k=BYTES))
    return "\n".join(letters[at : at + width] for at in range(0, BYTES - 20_000, width))


def adversarial(count: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Patterns whose automata have very many states, or that match almost everywhere."""
    chance = random.Random(7)
    for number in range(count):
        one, two = chance.choice(ATOMS), chance.choice(ATOMS)
        times = chance.choice((10, 60, 200, 500, 900))
        shapes = (
            f"{one}*{two}{{0,{times}}}q",
            f"{one}*a{two}{{{times}}}z",
            f"(?:{one}{{0,{min(times, 30)}}}{two}){{2,9}}q",
            f"(?s){one}.*{two}.*q.*z",
            f"(?:{one}|{two}|x)",
            f"({one}+{two}+)+q",
        )
        options = {"multiline": number % 3 == 0, "ignore_case": number % 5 == 0}
        mode = ("content", "files", "count")[number % 3]
        yield shapes[number % len(shapes)], {**options, "mode": mode, "context": number % 4}


@pytest.fixture(scope="module")
def large(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A repository of three files of 1 MB, of short lines, long lines, and one line."""
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("large")))
    widths = {"short.txt": 80, "long.txt": 20_000, "one.txt": BYTES}
    files: dict[str, str | bytes] = {
        name: text(at, n) for at, (name, n) in enumerate(widths.items())
    }
    with ingested_once(django_db_blocker, folder, {"large": files}):
        yield


@pytest.mark.usefixtures("large")
def test_no_pattern_takes_longer_than_the_limit(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    post("grep", pattern="a", limit=1)  # what is imported and started once
    monkeypatch.setattr(finding, "SECONDS", LIMIT)
    stopped = 0
    for pattern, options in adversarial(200):
        start = time.monotonic()
        status, answer = post("grep", pattern=pattern, **options)
        assert time.monotonic() - start < LIMIT + OVER, pattern
        assert status == 200 or answer["error"] == "BAD_PATTERN", answer
        if "stopped" in answer:
            stopped += 1
            assert answer["truncated"] and answer["stopped"].startswith("Stopped after")
    assert stopped, "no pattern was slow"


@pytest.mark.usefixtures("large")
def test_after_a_search_was_killed_the_next_one_is_answered(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(finding, "SECONDS", LIMIT)
        _, answer = post("grep", pattern="(?:.{0,300}a){3}q")
    assert "of 3 files: 0.3 seconds are over." in answer["stopped"]
    _, answer = post("grep", pattern="a", limit=1)
    assert len(answer["results"]) == 1 and "stopped" not in answer


@pytest.mark.usefixtures("large")
def test_a_search_that_gets_no_place_is_refused(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed, "places", computed.Places(places=0))
    monkeypatch.setattr(computed, "WAIT_SECONDS", 0.05)
    status, answer = post("grep", pattern="a")
    assert (status, answer["error"]) == (503, "OVERLOADED")
    assert answer["retryAfter"] > 0


def test_a_pattern_with_too_large_a_program_is_refused(post: Post) -> None:
    status, answer = post("grep", pattern="(?:.{0,1000}a){1}(?:.{0,999}b)")
    assert (status, answer["error"]) == (400, "BAD_PATTERN")
    assert "its program is too large" in answer["message"]
    assert "Use fewer or smaller repetitions" in answer["message"]


@pytest.mark.parametrize("between", [*string.punctuation, " ", "\t"])
def test_escaped_punctuation_and_whitespace_require_what_they_are(between: str) -> None:
    text = f"static{between}int"
    assert required_by(text, fixed=True)
    assert required_by(rf"static\{between}int") == required_by(text, fixed=True)
    assert required_by(re.escape(text)) == required_by(text, fixed=True)
