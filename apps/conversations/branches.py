"""The branches of a conversation. Its turns are a tree; one branch of it is followed.

`Turn.parent` makes the tree, and `Conversation.head` is the last turn of the branch that is
followed: what pages, clients and models are given. Another question after the same turn, or another
answer to the same question, begins a branch. A turn is newer than its parent.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db.models import QuerySet

from apps.conversations.models import Conversation, Turn


def parse_turn_id(text: str) -> UUID | None:
    """The id of a turn; None for a text that is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Tree:
    """The stored turns of a conversation.

    parents: parent by id of a turn, oldest first.
    head: the last turn of the branch that is followed; None without turns.
    newest_at: time of the newest turn; None without turns.
    """

    conversation_id: str
    parents: Mapping[UUID, UUID | None]
    head: UUID | None
    newest_at: datetime | None

    @classmethod
    def read(cls, conversation_id: str) -> "Tree":
        """Read a conversation in two queries, which do not read what was said."""
        heads = Conversation.objects.filter(pk=conversation_id).values_list("head", flat=True)
        (tree,) = cls.read_all({conversation_id: heads.first()})
        return tree

    @classmethod
    def read_all(cls, heads: Mapping[str, UUID | None]) -> list["Tree"]:
        """Read conversations, by id with their heads, in one query."""
        turns = Turn.objects.filter(conversation__in=list(heads)).order_by("created_at", "id")
        links: dict[str, list[tuple[UUID, UUID | None, datetime]]] = {pk: [] for pk in heads}
        rows = turns.values_list("conversation", "id", "parent", "created_at")
        for conversation_id, turn, parent, at in rows:
            links[conversation_id].append((turn, parent, at))
        return [cls._of(pk, own, heads[pk]) for pk, own in links.items()]

    @classmethod
    def _of(
        cls, pk: str, links: Sequence[tuple[UUID, UUID | None, datetime]], head: UUID | None
    ) -> "Tree":
        parents = {turn: parent for turn, parent, _ in links}
        if head not in parents:
            # The head was deleted, or this is a database without transactions.
            head = next(reversed(parents), None)
        return cls(pk, parents, head, links[-1][2] if links else None)

    def branch(self, last: UUID | None) -> set[UUID]:
        """The turns from a first one to `last`."""
        found: set[UUID] = set()
        while last is not None and last in self.parents and last not in found:
            found.add(last)
            last = self.parents[last]
        return found

    def turns(self, last: UUID | None) -> QuerySet[Turn]:
        """The rows of the branch that ends with `last`."""
        branch = self.branch(last)
        hidden = self.parents.keys() - branch
        rows = Turn.objects.filter(conversation=self.conversation_id)
        if len(branch) < len(hidden):
            return rows.filter(pk__in=branch)
        if self.newest_at is not None:
            # Turns that were added meanwhile may belong to another branch.
            rows = rows.filter(created_at__lte=self.newest_at)
        return rows.exclude(pk__in=hidden) if hidden else rows

    @cached_property
    def _children(self) -> Mapping[UUID | None, Sequence[UUID]]:
        children: dict[UUID | None, list[UUID]] = defaultdict(list)
        for turn, parent in self.parents.items():
            children[parent].append(turn)
        return children

    def siblings(self, turn: UUID) -> Sequence[UUID]:
        """The turns with the parent of a turn, oldest first; with itself."""
        return self._children[self.parents[turn]]

    def end(self, turn: UUID) -> UUID:
        """The last turn of the newest branch through a turn."""
        below = {turn}
        for child, parent in self.parents.items():
            if parent in below:
                below.add(child)
                turn = child
        return turn


def followed(conversation_id: str) -> QuerySet[Turn]:
    """The rows of the branch that is followed."""
    tree = Tree.read(conversation_id)
    return tree.turns(tree.head)


def hidden(conversations: Iterable[Conversation]) -> set[UUID]:
    """The turns of some conversations that are on other branches than the one that is followed."""
    trees = Tree.read_all({row.pk: row.head for row in conversations})
    return {turn for tree in trees for turn in tree.parents.keys() - tree.branch(tree.head)}
