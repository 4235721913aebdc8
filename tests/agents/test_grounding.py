"""Fifty queries on a real index: every quotation is in its file at the cited lines."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from markdown_it import MarkdownIt

from apps.agents.events import TurnFinished
from apps.agents.messages import Message
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.builtin import BuiltinProvider
from apps.agents.tools import toolset
from apps.code.chunking import decode, lines_of
from apps.core.config import BASE_DIR
from tests.agents.fakes import record
from tests.support.ingested import ingest

pytestmark = pytest.mark.door

DEFINITION = re.compile(r"^\s*(?:def|class) ([A-Za-z]\w+)", re.MULTILINE)


@pytest.fixture
def repository(folder: Path, transactional_db: None) -> Path:
    """Copy a part of this project and ingest it as "mine"."""
    rooms = ("agents", "browse", "lookup", "retrieval", "tools")
    for name in (*(f"apps/{room}" for room in rooms), "docs"):
        shutil.copytree(BASE_DIR / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
    ingest(folder, "mine")
    return folder


def questions(repository: Path) -> list[str]:
    """Return fifty questions about definitions in the code."""
    sources = [path.read_text() for path in sorted(repository.rglob("*.py"))]
    names = sorted({name for source in sources for name in DEFINITION.findall(source)})
    step = len(names) // 50
    return [f"What does {name} do?" for name in names[::step]][:50]


def quotations(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield each quoted block with the citation above it."""
    reference = ""
    for token in MarkdownIt().parse(markdown):
        for child in token.children or ():
            reference = child.content if child.type == "code_inline" else reference
        if token.type == "fence":
            yield reference, token.content


async def test_every_quotation_in_fifty_answers_is_in_its_file(repository: Path) -> None:
    citations: set[str] = set()
    queries = questions(repository)
    assert len(queries) == 50
    for question in queries:
        request = ModelRequest("search", (Message("user", question),), toolset())
        recorded = await record(BuiltinProvider(), request)
        assert isinstance(recorded.end, TurnFinished)
        quoted = list(quotations(recorded.text))
        assert quoted, question
        for reference, text in quoted:
            check(repository, reference, text)
            citations.add(reference)
    assert len(citations) > 50


def check(repository: Path, reference: str, text: str) -> None:
    place = re.fullmatch(r"mine/(.+):(\d+)-(\d+)", reference)
    assert place, reference
    path, start, end = place.groups()
    lines = lines_of(decode((repository / path).read_bytes()))[int(start) - 1 : int(end)]
    # A line longer than a chunk is quoted partly.
    assert text == "\n".join(lines) + "\n" or (len(lines) == 1 and text[:-1] in lines[0]), reference


async def test_an_answer_limited_to_a_repository_cites_no_other(repository: Path) -> None:
    await sync_to_async(ingest)(repository / "docs", "papers")
    request = ModelRequest("search", (Message("user", "providers"),), toolset(("papers",)))
    recorded = await record(BuiltinProvider(), request)
    assert {match["repo"] for match in recorded.results[0].payload["results"]} == {"papers"}
