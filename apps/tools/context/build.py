"""One answer of the passages that answer a question, and what a reader of them needs.

    passages      search()      the best matches, whole as long as they fit
    definitions   related.py    of the names that the passages use
    callers       related.py    of the definitions that contain the passages
    tests         related.py    that use them
    passages      search()      the next matches: whole, then cut to the lines with its words
    mentions      search()      one line of each further file, as long as there is room

What a part leaves over belongs to the next.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.index.models import Root
from apps.index.types import Area
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.symbols.types import Place
from apps.retrieval.query import SearchQuery, is_inside
from apps.retrieval.repositories import find_root, repo_id
from apps.retrieval.results import Match, fallback_of, passes, setting_of_cutoff
from apps.retrieval.search import search
from apps.tools.context import related
from apps.tools.context.packing import Line, Packer, in_order, telling_line
from apps.tools.context.tokens import estimate
from apps.tools.context.types import HINT_TOKENS, Context, ContextQuery, Piece

# Matches that are considered, and those of them that may be passages.
CANDIDATES, MAX_PASSAGES = 30, 20
# The share of the room that whole passages leave to the other parts, but never of this room.
OTHERS, ROOM_OF_PASSAGES = 0.4, 1_000
# The share of an answer that is left free: tokens are estimated.
MARGIN = 0.03
# Shares of the room: definitions, then callers and tests.
DEFINITIONS, USES = 0.12, 0.1
# Tokens below which there is no room for: a cut passage, a line, and what takes long to look up.
LEAST_PASSAGE, LEAST_LINE, LEAST_OTHERS = 60, 20, 300
DEFINITION_SHARE = 0.34
# Passages whose names are looked up, and names whose callers and tests are.
MAX_SUBJECTS = 2
# Seconds in which files that no query has met before are parsed for callers.
USES_SECONDS = 0.6
# Passages without room that are named.
MAX_LEFT_OUT = 5


@dataclass(frozen=True)
class Passages:
    """The passages that a question finds, best first."""

    near: tuple[Piece, ...]  # that pass the cutoff
    every: tuple[Piece, ...]
    weak: tuple[Piece, ...]  # the best, if none passes it
    degraded: str
    missing_words: tuple[str, ...]

    def beginning_with(self, lines: Set[Line]) -> "Passages":
        """The same passages, those first that have one of these lines."""
        of_files: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for repo, path, line in lines:
            of_files[repo, path].add(line)

        def has_none(piece: Piece) -> bool:
            known = of_files[piece.place.repo, piece.place.path]
            return known.isdisjoint(range(piece.start_line, piece.end_line + 1))

        return replace(self, near=tuple(sorted(self.near, key=has_none)))

    def room(self, tokens: int) -> int:
        """The tokens that the pieces of an answer may have: what its other keys leave."""
        fields = {"missingWords": self.missing_words, "degraded": self.degraded}
        form = {"results": [], **{key: value for key, value in fields.items() if value}}
        hint = 0 if self.near else HINT_TOKENS
        others = estimate(json.dumps(form, ensure_ascii=False)) + hint
        return round(tokens * (1 - MARGIN)) - others

    def beside_best(self, tokens: int) -> float:
        """The tokens of an answer that its best passage leaves, if it is whole; all of them if it
        has no room."""
        room = self.room(tokens)
        rest = room - self.near[0].tokens if self.near else room
        return rest if rest >= 0 else room


@marked
def find(query: ContextQuery) -> Passages:
    """Search for the passages of an answer. Raises as `search`."""
    result = search(
        SearchQuery(query.text, query.repositories, CANDIDATES, query.filters),
        with_cutoff=False,
        total_chars=CANDIDATES * config().tool_chunk_max_chars,
    )
    cutoff = setting_of_cutoff()
    published = queries.published_roots()
    named = [find_root(name, published) for name in query.repositories]
    roots = {repo_id(root): root for root in named or published}
    every = list(_passages(result.matches, roots))
    near = [piece for match, piece in every if passes(match, cutoff) and not match.is_weak]
    weak: Sequence[Match] = ()
    if not near:
        count, ranked = config().retrieval_fallback_chunks, config().retrieval_mode == "hybrid"
        weak = fallback_of(result.matches, count, ranked=ranked)
    return Passages(
        tuple(near),
        tuple(piece for _, piece in every),
        tuple(piece for _, piece in _passages(weak, roots)),
        result.degraded,
        tuple(result.missing_words),
    )


@marked
def build_context(query: ContextQuery, found: Passages, shown: Set[Line] = frozenset()) -> Context:
    """Pack the answer to a question into `query.max_tokens`. Raises as `search`.

    shown: lines that the reader has, which are not repeated
    """
    packer = Packer(query.text, max(1, found.room(query.max_tokens)), shown)
    if found.near:
        left_out = _pack(packer, found, query.filters.areas)
    else:
        left_out = ()
        for piece in found.weak:
            packer.add(replace(piece, is_weak=True), packer.room // 2)
    tokens = query.max_tokens - packer.room
    pieces = in_order(packer.pieces)
    return Context(pieces, tokens, left_out, found.degraded, found.missing_words)


def _pack(packer: Packer, found: Passages, areas: Sequence[Area]) -> tuple[str, ...]:
    """Pack all parts. Returns what found no room."""
    whole = packer.room
    passages = [piece for piece in found.near[:MAX_PASSAGES] if not packer.is_shown(piece)]
    others = min(whole * OTHERS, max(0, whole - ROOM_OF_PASSAGES))
    # The best is cut only if the whole answer has no room for it.
    waiting = [] if passages and packer.add(passages[0], packer.room) else passages[:1]
    waiting += _pack_whole(packer, passages[1:], until=others)
    root = found.near[0].place.root
    own = [piece for piece in packer.pieces if piece.place.root == root]
    if packer.room >= LEAST_OTHERS:
        most, until = whole * DEFINITIONS * DEFINITION_SHARE, packer.room - whole * DEFINITIONS
        for piece in related.definitions(root, own, packer.question):
            if is_inside(areas, root, piece.place.path):
                packer.add(piece, round(most))
            if packer.room <= until:  # before the next is looked up
                break
        _pack_uses(packer, root, own, areas, until=packer.room - whole * USES)
    waiting = _pack_whole(packer, waiting, until=0)
    waiting = [
        piece
        for piece in waiting
        if packer.room < LEAST_PASSAGE or not packer.add(piece, packer.room)
    ]
    left_out = tuple(_names(packer, waiting))
    _pack_mentions(packer, found.every)
    return left_out


def _pack_whole(packer: Packer, pieces: Sequence[Piece], *, until: float) -> list[Piece]:
    """Pack passages that fit whole, best first, until only `until` tokens remain. Returns the
    others."""
    return [
        piece
        for piece in pieces
        if (room := packer.room - until) < LEAST_PASSAGE or not packer.add_whole(piece, room)
    ]


def _pack_uses(
    packer: Packer, root: Root, passages: Sequence[Piece], areas: Sequence[Area], *, until: float
) -> None:
    """Pack callers and tests of the definitions that contain the passages, in turn."""
    deadline = Deadline(USES_SECONDS)
    for subject in islice(related.subjects(root, passages, packer.question), MAX_SUBJECTS):
        with suppress(CodeinfoError):  # the passages answer without them
            for piece in related.uses(root, subject, tuple(areas), deadline):
                packer.add_line(piece)
                if packer.room <= until:  # before the next is looked up
                    return


def _pack_mentions(packer: Packer, pieces: Sequence[Piece]) -> None:
    """Pack one line of each file that has none yet: the one with most words of the question."""
    for piece in pieces:
        if packer.room < LEAST_LINE:
            return
        if not packer.has(piece.place.repo, piece.place.path):
            lines = piece.text.split("\n")
            at = telling_line(lines, packer.question, piece.symbol)
            text, start = lines[at].strip(), piece.start_line + at
            packer.add_line(replace(piece, role="mention", text=text, start_line=start))


def _passages(matches: Sequence[Match], roots: Mapping[str, Root]) -> Iterator[tuple[Match, Piece]]:
    for match in matches:
        root = roots.get(match.repo)
        if root is not None and match.start_line is not None:
            place = Place(root, match.rel_path, match.language)
            text, symbol, score = match.chunk, match.symbol, match.score
            piece = Piece(place, match.start_line, text, "passage", symbol=symbol, score=score)
            yield match, piece


def _names(packer: Packer, pieces: Sequence[Piece]) -> Iterator[str]:
    """Places of the first of these pieces, as long as there is room to name them."""
    for piece in pieces[:MAX_LEFT_OUT]:
        name = f"{piece.place.repo}/{piece.place.path}:{piece.start_line}-{piece.end_line}"
        if not packer.add_name(name):
            return
        yield name
