"""What the list of tools, and an answer, cost a model, in tokens."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.mcp.search import SEARCH
from benchmarks.agents import LIMIT, plain, token_counts
from tests.house.sources import HOME
from tests.mcp.speech import STATELESS, call
from tests.support.ingested import ingest

pytestmark = [pytest.mark.door]

# Of OpenAI's encoding o200k.
MOST_ON_AVERAGE = 231
MOST_OF_ONE = 400
MOST_OF_ALL = 3_700


def test_the_tools_of_mcp_cost_few_tokens() -> None:
    tools = {
        tool.name: {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
        for tool in SEARCH.registry()
    }
    texts = [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools.values()]
    counts = dict(zip(tools, token_counts(texts), strict=True))
    assert sum(counts.values()) <= MOST_ON_AVERAGE * len(counts), counts
    assert max(counts.values()) <= MOST_OF_ONE, counts
    assert sum(counts.values()) <= MOST_OF_ALL, counts


@pytest.mark.django_db(transaction=True)
async def test_references_cost_little_more_than_plain_text(folder: Path) -> None:
    await sync_to_async(shutil.copytree)(HOME / "codeinfo_cli/clients", folder / "clients")
    await sync_to_async(ingest)(folder / "clients")
    texts = []
    for name in ("Client", "Machine", "Damaged", "machine", "path"):
        form = {"name": name, "limit": 50}
        full = (await call("FindReferences", STATELESS, format="full", **form)).result
        compact = (await call("FindReferences", STATELESS, **form)).result
        lean = grouped(full["structuredContent"]["results"])
        texts += [plain(full["structuredContent"]), lean, compact["content"][0]["text"]]
    counts = token_counts(texts)
    assert sum(counts[2::3]) <= LIMIT * sum(counts[0::3])
    assert sum(counts[2::3]) <= LIMIT * sum(counts[1::3])


def grouped(rows: list[dict[str, Any]]) -> str:
    """The rows as plain text of fewest tokens: a heading for each file and each definition."""
    text, headings = [], ("", "")
    for row in rows:
        file, symbol = f"{row['repo']}/{row['relPath']}", f"@{row.get('symbol', '')}"
        text += [file] if file != headings[0] else []
        text += [symbol] if (file, symbol) != headings else []
        text.append(f"{row['startLine']}: {row['chunk']}")
        headings = file, symbol
    return "\n".join(text)
