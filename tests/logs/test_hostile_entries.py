"""Texts that were made to keep the redaction busy: an entry of them is written soon."""

import json

import pytest

from apps.logs.redaction import MAX_TEXT
from tests.support.killable import output_of

pytestmark = pytest.mark.door

# Two hundred texts, each as long as the redaction looks.
WRITE = """
import json, sys
from apps.logs.redaction import clean
text = json.load(sys.stdin)
print(json.dumps(clean({"message": [text] * 200}))[:12])
"""


@pytest.mark.parametrize("piece", ["eyJ-", "uri=", "token=(", "\udcff"])
def test_an_entry_is_written_soon_whatever_it_holds(piece: str) -> None:
    text = piece * (2 * MAX_TEXT // len(piece))
    assert output_of(WRITE, json.dumps(text)) == '{"message": \n'
