"""How a tag is written, how a conversation stores its tags, and which conversations have one.

`Conversation.tags` is plain text, one tag a line, so that every database compares a whole tag in
the same way. A tag has neither spaces nor capitals.
"""

import re
from collections.abc import Iterable

from django.db.models import QuerySet

from apps.conversations.models import Conversation
from apps.core.errors import InvalidInput
from apps.core.values.texts import check_text

MAX_TAGS = 10  # of one conversation
MAX_LENGTH = 40


def normalised(text: str) -> str:
    """A tag as it is stored: `#Needs review` is `needs-review`. Raises InvalidInput."""
    tag = re.sub(r"\A#[#-]*", "", "-".join(text.casefold().split()))
    check_text("A tag", tag, MAX_LENGTH)
    return tag


def column(tags: Iterable[str]) -> str:
    """The column of a conversation with these tags. Raises InvalidInput if they are too many."""
    names = sorted(set(tags))
    if len(names) > MAX_TAGS:
        raise InvalidInput(f"A conversation has at most {MAX_TAGS} tags.")
    return "".join(f"\n{name}" for name in names) + "\n" * bool(names)


def having(rows: QuerySet[Conversation], tag: str) -> QuerySet[Conversation]:
    """The conversations with a tag, as it is stored."""
    return rows.filter(tags__contains=f"\n{tag}\n")
