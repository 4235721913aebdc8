"""What an answer says of the part of the index that could not be asked: the texts of `degraded`."""

from collections.abc import Sequence

from apps.index.models import Root
from apps.retrieval.repositories import repo_id

WORDS_ONLY = "words only"


def words_only(failed: Sequence[Root], roots: Sequence[Root]) -> str:
    """Of the roots whose vectors failed; "" where there are none."""
    if not failed or len(failed) == len(roots):
        return WORDS_ONLY if failed else ""
    return f"{WORDS_ONLY} in {', '.join(map(repo_id, failed))}"


def vectors_only(wordless: Sequence[Root]) -> str:
    """Of the roots whose words could not all be asked; "" where there are none."""
    names = ", ".join(sorted(map(repo_id, wordless)))
    return f"vectors only: the words of {names} are being rebuilt" if names else ""


def lost_vectors(roots: Sequence[Root]) -> str:
    """Of the roots that are known to lack vectors; "" where there are none."""
    return "; ".join(f"{repo_id(root)}: {root.damage}" for root in roots if root.damage)
