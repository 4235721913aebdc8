"""Hostile texts for the redaction: writing an entry takes bounded time."""

import json

import pytest

from apps.logs.redaction import MAX_TEXT
from tests.support.killable import output_of

pytestmark = pytest.mark.door

# Two hundred texts, each as long as the redaction reads.
WRITE = """
import json, sys
from apps.logs.redaction import clean
text = json.load(sys.stdin)
print(json.dumps(clean({"message": [text] * 200}))[:12])
"""


@pytest.mark.parametrize("piece", ["eyJ-", "uri=", "token=(", "\udcff"])
def test_any_entry_is_written_within_the_time_limit(piece: str) -> None:
    text = piece * (2 * MAX_TEXT // len(piece))
    assert output_of(WRITE, json.dumps(text)) == '{"message": \n'
