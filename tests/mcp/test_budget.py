"""What the list of tools costs a model that connects, in tokens."""

import json

import pytest

from apps.mcp.search import SEARCH
from benchmarks.agents import token_counts

pytestmark = [pytest.mark.door]

# Of OpenAI's encoding o200k.
MOST_ON_AVERAGE = 231
MOST_OF_ONE = 400


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
