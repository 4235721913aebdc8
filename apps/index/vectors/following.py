"""How far Chroma has followed the published index, as the follower of this process or of its worker
reported it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np

from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.index import changes, queries
from apps.index.models import Root


class Following(NamedTuple):
    """The state of Chroma.

    off: CODEINFO_CHROMA is off; following: it does not have all vectors yet; complete: it has all
    vectors that are published, and no others; failed: the last attempt failed, another one follows
    """

    state: Literal["off", "following", "complete", "failed"]
    vectors: int = 0  # that it has of the published ones
    total: int = 0  # published
    reason: str = ""  # why it failed: a sentence

    @property
    def percent(self) -> int:
        """100 only if it has all."""
        return 100 * self.vectors // self.total if self.total else 100


def searched_stores() -> Mapping[UUID, Sequence[Root]]:
    """Return store → its published roots with vectors. Without those that wait to be embedded with
    another model: they are not searched."""
    model = queries.locked_model()
    stores: defaultdict[UUID, list[Root]] = defaultdict(list)
    for root in queries.published_roots():
        if root.embedded and root.model == model:
            stores[root.store].append(root)
    return stores


def fingerprint(roots: Iterable[Root]) -> str:
    """What Chroma shall have of some roots."""
    facts = sorted(f"{root.store} {root.id} {root.generation} {root.model}" for root in roots)
    settings = config().chroma_url, config().ingest_collection
    return sha256("\n".join((*settings, *facts)).encode()).hexdigest()


class State(NamedTuple):
    """What the follower has reached."""

    stores: Mapping[UUID, tuple[int, int]] = {}  # how many vectors Chroma has, and shall have
    keys: Mapping[UUID, str] = {}  # fingerprint of each store, when it was followed
    followed: str = ""  # fingerprint of what Chroma has, if it has all
    reason: str = ""  # why it does not have all

    def shown(self) -> tuple[object, ...]:
        """What a page shows of it."""
        percents = [(store, 100 * n // m if m else 100) for store, (n, m) in self.stores.items()]
        return percents, self.keys, self.followed, self.reason


class Progress:
    """What the follower has reached. Thread-safe: one thread writes."""

    def __init__(self) -> None:
        self.state = State()
        self.failed_searches = 0  # in a row

    def start(self, stores: Mapping[UUID, tuple[int, int]], keys: Mapping[UUID, str]) -> None:
        """Set how many vectors Chroma has of each store, and how many it shall have. `keys`: the
        fingerprint of each store."""
        self.show(State(dict(stores), keys, reason=self.state.reason))

    def update(self, store: UUID, vectors: int) -> None:
        stores = {**self.state.stores, store: (vectors, self.state.stores[store][1])}
        self.show(self.state._replace(stores=stores, followed=""))

    def end(self, followed: str = "", *, reason: str = "") -> None:
        """Set what Chroma has, or why it does not have all."""
        self.show(self.state._replace(followed=followed, reason=reason))

    def show(self, state: State) -> None:
        """Set the state, and notify the pages if they show it."""
        before, self.state = self.state, state
        if state.shown() != before.shown():
            hub.notify(changes.CHROMA)

    def reached(self, store: UUID, roots: Sequence[Root]) -> tuple[int, int]:
        """Of what was published since, Chroma may lack something: at least one vector."""
        vectors, total = self.state.stores.get(store, (0, 0))
        if total and self.state.keys.get(store) == fingerprint(roots):
            return vectors, total
        total = max((root.embedded for root in roots), default=0)
        return min(vectors, max(0, total - 1)), total


progress = Progress()


def following() -> Following:
    """The state of Chroma as a whole."""
    if config().chroma == "off":
        return Following("off")
    state, stores = progress.state, searched_stores()
    pairs = [progress.reached(store, roots) for store, roots in stores.items()]
    vectors, total = np.array(pairs, np.intp).reshape(-1, 2).sum(axis=0).tolist()
    if state.reason:
        return Following("failed", vectors, total, state.reason)
    wanted = fingerprint(root for roots in stores.values() for root in roots)
    is_complete = state.followed == wanted or not (state.followed or total)
    return Following("complete" if is_complete else "following", vectors, total)


def of_stores() -> dict[UUID, tuple[int, int]]:
    """Return store (`Root.store`) → how many vectors Chroma has of those that its roots have
    published, and how many these are. Roots with equal files share a store."""
    stores = searched_stores().items()
    return {store: progress.reached(store, roots) for store, roots in stores}
