"""Hostile texts for the redaction: writing an entry takes bounded time."""

import json

import pytest

from apps.logs.redaction import MAX_TEXT
from tests.support.killable import output_of

pytestmark = pytest.mark.door

PIECES = ("eyJ-", "uri=", "token=(", "\udcff")
TEXTS = [piece * (2 * MAX_TEXT // len(piece)) for piece in PIECES]
# Twenty of each text, which is as long as the redaction reads.
WRITE = """
import json, sys
from apps.logs.redaction import clean
print(json.dumps(clean({"message": json.load(sys.stdin) * 20}))[:12])
"""


def test_any_entry_is_written_within_the_time_limit() -> None:
    assert output_of(WRITE, json.dumps(TEXTS), seconds=30) == '{"message": \n'
