"""Links to copies of conversations.

A copy is made once, of the branch that is followed then. It does not change with the conversation,
which deletes it when it is deleted. The link has a token of 128 random bits, of which only the hash
is stored.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from hashlib import sha256

from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils import timezone

from apps.conversations import queries
from apps.conversations.answers.exchange import exchanges_of
from apps.conversations.models import VALID_ID, Conversation, Share
from apps.conversations.renderers import standalone
from apps.core.errors import Conflict, NotFound
from apps.core.principal import current

LIFETIME = timedelta(days=30)
# Links of one user that open something, and bytes of one copy.
MAX_LINKS, MAX_BYTES = 50, 5_000_000
MAX_TITLE = 255  # with names of repositories it may be longer than it was


def share(conversation_id: str) -> str:
    """Make a link to a copy of a conversation. Returns its token.

    Raises NotFound, and Conflict: TOO_MANY_LINKS, NOTHING_TO_SHARE or TOO_LONG_TO_SHARE.
    """
    conversation = queries.get(conversation_id)
    delete_expired()
    creator = current().user_id
    if Share.objects.filter(creator=creator).count() >= MAX_LINKS:
        raise Conflict(
            f"You have {MAX_LINKS} links already. Revoke one first.", code="TOO_MANY_LINKS"
        )
    views = exchanges_of(queries.turns(conversation.id))
    title, sections = standalone.copied(conversation.title, views)
    html = _joined(sections)
    token = secrets.token_hex(16)
    now = timezone.now()
    row = Share(
        token_hash=_hash(token),
        conversation=conversation,
        creator_id=creator,
        title=title[:MAX_TITLE],
        html=html,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    try:
        row.save(force_insert=True)
    except IntegrityError as error:  # deleted meanwhile
        raise NotFound("Conversation not found.") from error
    if not _is_left(conversation.id):  # the same without foreign keys
        row.delete()
        raise NotFound("Conversation not found.")
    return token


def _joined(sections: Iterable[str]) -> str:
    html: list[str] = []
    size = 0
    for section in sections:
        html.append(section)
        size += len(section.encode())
        if size > MAX_BYTES:
            raise Conflict(
                "This conversation is too long for a link. Export it instead.",
                code="TOO_LONG_TO_SHARE",
            )
    if not html:
        raise Conflict("There is no answer to share yet.", code="NOTHING_TO_SHARE")
    return "".join(html)


def opened(token: str) -> Share | None:
    """The copy that a token opens; None if the token is wrong or malformed, has expired or was
    revoked. Each takes the same: a hash, and a look-up by it."""
    row = _live().filter(pk=_hash(token)).first()
    # Without foreign keys, a copy may be stored right after its conversation was deleted.
    return row if row is not None and _is_left(row.conversation_id) else None


def _is_left(conversation_id: str) -> bool:
    return Conversation.objects.filter(pk=conversation_id).exists()


def links(conversation_id: str) -> tuple[Sequence[Share], Sequence[Share]]:
    """The live links to a conversation, and those that the user has made to others; newest first
    and without their HTML. Raises NotFound."""
    conversation = queries.get(conversation_id)
    live = _live().defer("html")
    others = live.filter(creator=current().user_id).exclude(conversation=conversation)
    return list(live.filter(conversation=conversation)), list(others)


def revoke(token_hash: str) -> None:
    """Delete a copy; no effect on one that is gone. Raises NotFound for that of another user, if
    the conversation is not visible either."""
    if not VALID_ID.match(token_hash):
        raise NotFound("Link not found.")
    for row in Share.objects.filter(pk=token_hash).only("conversation", "creator"):
        if row.creator_id is None or row.creator_id != current().user_id:
            queries.get(row.conversation_id)
        row.delete()


def delete_expired() -> None:
    """The server calls it once a day. So does whoever makes a link, before counting the others."""
    Share.objects.filter(expires_at__lte=timezone.now()).delete()


def _live() -> QuerySet[Share]:
    return Share.objects.filter(expires_at__gt=timezone.now())


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
