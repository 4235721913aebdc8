"""Which lines of a passage have words of a question."""

import pytest

from apps.embedding.words import stems
from apps.retrieval.ranking.rank import query_stems
from apps.tools.snippets import shared_stems

LINES = [
    "def run_queries(query):",
    "",
    "    # parsing is PARSED by parseHTTPResponse_v2",
    "    return [city for CITIES in İstanbul]",
    "    y = sparse",
]


@pytest.mark.parametrize(
    "question", ["query", "Which cities are parsed?", "y v2 http istanbul", "running", "return"]
)
def test_each_line_has_the_stems_that_it_shares_with_the_question(question: str) -> None:
    wanted = set(query_stems(question))
    assert shared_stems(LINES, question) == [wanted.intersection(stems(line)) for line in LINES]
