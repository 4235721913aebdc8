"""No text that anybody sends or ingests may make a regular expression of ours take for ever."""

import json
import os
import subprocess
import sys

import pytest

from tests.house.patterns import NODE, Pattern, judged, patterns
from tests.house.sources import HOME

pytestmark = [
    pytest.mark.skipif(
        not NODE.exists() and os.environ.get("CI") != "true", reason="make test installs recheck"
    ),
    pytest.mark.door,
]

# (file, beginning of the expression) → why it is safe all the same, and how long a text it is given
# at most. What is known only when it runs has no verdict of recheck's.
EXCEPTIONS: dict[tuple[str, str], tuple[str, int]] = {
    ("apps/agents/reasoning.py", "'|'.join"): ("literal markers of ours", 0),
    ("apps/embedding/words.py", "f'{character}+'"): ("one character class of ours", 0),
    ("apps/embedding/words.py", "character"): ("one character class of ours", 0),
    ("apps/index/lexical/words.py", "f'([{_UNSPACED}"): ("runs of disjoint character classes", 0),
    ("apps/index/lexical/words.py", "f'[^"): ("one character", 0),
    ("apps/ingest/watching/watcher.py", "'|'.join"): ("names of editors' files; file names", 0),
    ("apps/ingest/discovery/tables.py", "'|'.join"): ("shell patterns of ours; file names", 0),
    ("apps/conversations/renderers/standalone.py", "'|'.join"): (
        "escaped folders; no backtracking",
        0,
    ),
    ("apps/browse/marks.py", 'f"(?:'): ("escaped words of two characters", 0),
    ("apps/code/syntax/pieces.py", "f'{before}"): ("an escaped name, which cannot backtrack", 0),
    ("apps/code/alphabets.py", "'õ(?!e)"): ("bounded; 20,000 characters are looked at", 20_000),
    ("apps/code/syntax/macros.py", "b'((?:[{};"): ("bounded; a second for 1 MB at worst", 0),
    ("apps/code/syntax/macros.py", "b'\\\\n(?:static["): ("bounded; a second for 1 MB at worst", 0),
    ("apps/embedding/replies.py", "'model"): ("error_text cuts to 300 characters", 300),
    ("apps/logs/redaction.py", "'|'.join"): ("escaped secrets, which cannot backtrack", 0),
    ("apps/retrieval/query.py", "before +"): ("an escaped name between bounded repeats", 0),
    ("apps/index/globs.py", "'|'.join"): ("fnmatch makes each * atomic; see below", 0),
}


def exception_of(pattern: Pattern) -> tuple[str, str] | None:
    found = [key for key in EXCEPTIONS if key[0] == pattern.file]
    return next((key for key in found if pattern.shown.startswith(key[1])), None)


@pytest.fixture(scope="module")
def verdicts() -> list[tuple[Pattern, str, str]]:
    return list(judged(patterns()))


def test_every_pattern_is_safe_or_is_excepted_with_a_reason(
    verdicts: list[tuple[Pattern, str, str]],
) -> None:
    assert len(verdicts) > 80
    bad = [
        f"{pattern.where} {pattern.shown}: {status}, {why}"
        for pattern, status, why in verdicts
        if status != "safe" and exception_of(pattern) is None
    ]
    assert bad == []


def test_every_exception_is_needed(verdicts: list[tuple[Pattern, str, str]]) -> None:
    needed = {exception_of(pattern) for pattern, status, _ in verdicts if status != "safe"}
    assert needed - {None} == set(EXCEPTIONS)


WRITTEN_BADLY = r"""
import re
PART = r"(a+)+"
BY_NAME = re.compile(PART + "$")
def judge(text):
    return BY_NAME.search(text) or re.search(rf"x*{PART}b", text) or re.sub(r"\s+$", "", text)
FINE = re.compile(r"[a-z]+")
"""


def test_a_pattern_that_is_new_and_bad_is_found() -> None:
    found = list(judged(patterns({"apps/new.py": WRITTEN_BADLY})))
    assert sorted(status for _, status, _ in found) == ["safe", *["vulnerable"] * 3]


def test_every_pattern_ends_on_long_inputs(
    verdicts: list[tuple[Pattern, str, str]],
) -> None:
    jobs = [job_of(pattern) for pattern, _, _ in verdicts if pattern.text]
    done = subprocess.run(
        [sys.executable, "-m", "tests.house.pattern_attacks"],
        cwd=HOME,
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 3_000


def job_of(pattern: Pattern) -> dict[str, object]:
    key = exception_of(pattern)
    limit = EXCEPTIONS[key][1] if key else 0
    text = pattern.text or ""
    return {
        "where": pattern.where,
        "text": text.decode("latin-1") if isinstance(text, bytes) else text,
        "bytes": isinstance(text, bytes),
        "flags": pattern.flags,
        "engine": pattern.engine,
        "uses": sorted(pattern.uses - {"compile"}),
        "limit": limit or 1 << 17,
    }
