"""What an empty chat offers: the folders that may be ingested, and questions to begin with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from apps.conversations.examples import OWN_EXAMPLES
from apps.core.config import BASE_DIR, config
from apps.index.models import Root
from apps.ingest import folders
from apps.lookup.questions import questions_about
from apps.retrieval.repositories import repo_id

# Repositories whose questions are offered, the latest ingest first; and questions of each if there
# are several.
MAX_SECTIONS = 5
FEW = 2


@dataclass(frozen=True)
class Example:
    """A question of one click.

    text: with Markdown code spans.
    repository: its id; the answer searches nothing else.
    """

    text: str
    repository: str

    @property
    def question(self) -> str:
        """What is asked: the text as it is read, which becomes the title."""
        return self.text.replace("`", "")

    @property
    def html(self) -> SafeString:
        """The text with code spans."""
        pieces = re.split(r"`([^`]+)`", self.text)
        tags = ("code" if number % 2 else "span" for number in range(len(pieces)))
        return format_html_join("", "<{0}>{1}</{0}>", zip(tags, pieces, strict=True))


def context(roots: Sequence[Root], asked_for: str) -> dict[str, Any]:
    """The template context of the empty chat.

    asked_for: the repository id of the address, or "".
    """
    first = folders.first_root(config())
    chosen = [root for root in roots if root.path != first]
    named = next((root for root in roots if repo_id(root) == asked_for), None)
    is_first_use = not chosen and named is None
    about = [named] if named else (chosen or list(roots[:1]))[:MAX_SECTIONS]
    return {
        "is_first_use": is_first_use,
        "about": [(root, heading(root, is_first_use=is_first_use)) for root in about],
        "allowed": folders.allowed_text(),
    }


def heading(root: Root, *, is_first_use: bool = False) -> str:
    """The heading of the questions about a repository."""
    name = "codeinfo’s own source" if root.path == str(BASE_DIR) else repo_id(root)
    return f"Or try it on {name}" if is_first_use else f"Ask about {name}"


def examples(root: Root, most: int | None = None) -> list[Example]:
    """Questions about a repository, at most so many."""
    texts = OWN_EXAMPLES if root.path == str(BASE_DIR) else questions_about(root)
    return [Example(text, repo_id(root)) for text in texts[:most]]
