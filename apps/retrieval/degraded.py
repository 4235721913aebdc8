"""What an answer says of the part of the index that could not be asked: the texts of `degraded`."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.core.errors import Unavailable
from apps.index.changes import sweep_due
from apps.index.lexical import get_lexical
from apps.index.models import Root
from apps.retrieval.repositories import repo_id

log = logging.getLogger("codeinfo.retrieval")

T = TypeVar("T")

WORDS_ONLY = "words only"


def words_only(failed: Sequence[Root], roots: Sequence[Root]) -> str:
    """Of the roots whose vectors failed; "" where there are none."""
    if not failed or len(failed) == len(roots):
        return WORDS_ONLY if failed else ""
    return f"{WORDS_ONLY} in {', '.join(map(repo_id, failed))}"


def vectors_only(wordless: Sequence[Root]) -> str:
    """Of the roots whose words could not all be asked; "" where there are none."""
    return f"vectors only: {_rebuilt(wordless)}" if wordless else ""


def _rebuilt(wordless: Sequence[Root]) -> str:
    return f"the words of {', '.join(sorted(map(repo_id, wordless)))} are being rebuilt"


def lacks_words(root: Root) -> bool:
    """Whether the word index does not have all that is published: it is missing, of an earlier
    version or broken, or it lost something."""
    try:
        lacking = get_lexical().count(root.id) < root.embedded
    except Unavailable:
        return True
    # What another generation has since taken the place of, it need not have.
    return lacking and Root.objects.filter(id=root.id, generation=root.generation).exists()


def symbols_of(roots: Sequence[Root], ask: Callable[[Root], Sequence[T]]) -> tuple[list[T], str]:
    """What `ask` finds in the words of each of these roots, and the mark of those whose words are
    not whole: they give what they have, and the worker is told of them."""
    found: list[T] = []
    wordless: list[Root] = []
    for root in roots:
        try:
            found += ask(root)
        except Unavailable as error:
            log.warning("no symbols of a root: %s", error.message)
            wordless.append(root)
        else:
            wordless += [root] if lacks_words(root) else []
    if not wordless:
        return found, ""
    sweep_due.set()
    return found, _rebuilt(wordless)


def lost_vectors(roots: Sequence[Root]) -> str:
    """Of the roots that are known to lack vectors; "" where there are none."""
    return "; ".join(f"{repo_id(root)}: {root.damage}" for root in roots if root.damage)
