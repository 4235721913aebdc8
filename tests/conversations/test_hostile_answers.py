"""Answers of a megabyte that nobody would write: each is shown, and soon."""

import json

import pytest

from apps.agents.limits import MAX_ANSWER_BYTES as LONGEST
from tests.support.killable import output_of

pytestmark = pytest.mark.door

# What a reload shows, and what a page is sent while the answer comes, in ten pieces. Each text in a
# process of its own, which is killed if it takes too long; they share what is imported.
SHOW = """
import json, os, sys
from datetime import UTC, datetime
from apps.conversations.answers.exchange import Exchange
from apps.conversations.renderers import html

texts, results = json.load(sys.stdin)
def view(text, size, status):
    tool = {"type": "tool", "callId": "1", "name": "VectorSearch", "parameters": {}, "seconds": 1,
        "stage": "success", "result": {"results": results}, "error": None}
    parts = [tool, {"type": "text", "text": text[:size]}]
    return Exchange("1", "c", "Why?", datetime.now(UTC), status, parts)

def show(text):
    live = html.LiveExchange()
    live.whole(view(text, 0, "running"))
    for tenth in range(1, 11):
        live.changes(view(text, len(text) * tenth // 10, "running"))
    return html.exchange(view(text, len(text), "ok"))

ends = {}
for name, text in texts.items():
    if not (child := os.fork()):
        os._exit(not show(text).startswith('<article class="turn" id="turn-1"'))
    ends[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(ends))
"""
FOUND = [
    {"repo": "r", "relPath": f"{name}.py", "chunk": "x\n" * 2_000, "startLine": 1, "endLine": 2_000}
    for name in "ab"
    for _ in range(20)
]


def times(piece: str, size: int = LONGEST) -> str:
    return piece * (size // len(piece))


TEXTS = {
    "plus signs and letters": "+a" * 60_000,
    "plus signs and letters, a megabyte": times("+a"),
    "references to other lines": "".join(f"a.py:{n % 2_000 + 1}-2000 `" for n in range(60_000)),
    "references in code": times("`a.py:1` "),
    "references that nothing found": times("x/y.py:1 "),
    "the beginnings of a heading": "#" * 15_000 + "a:1" + ":" * 15_000 + "x\n\n```\nb\n```\n",
    "numbers after colons": times(":1 ", 30_000) + "\n\n```\nx\n```\n",
    "brackets": times("["),
    "links": times("[a](http://example.org) "),
    "emphasis": times("*a_ "),
    "list items": times("- a\n"),
    "headings": times("# a\n\n"),
    "quotations": times("> a\n\n"),
    "fences": times("```\na\n```\n"),
    "diagrams": times("```mermaid\nx\n```\n"),
    "one fence of blank lines": "```\n" + times("\n"),
    "fences in one line": times("```a "),
    "a table that is to be filled up": "|a" * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + times("a\n"),
    "definitions": times("[a]: b\n"),
}


def test_an_answer_is_shown_soon_whatever_it_holds() -> None:
    texts = {name: text[:LONGEST] for name, text in TEXTS.items()}
    ends = json.loads(output_of(SHOW, json.dumps([texts, FOUND])))
    assert ends == dict.fromkeys(TEXTS, 0)
