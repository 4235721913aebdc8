"""Whether lines that were cited are still there: one rule for pages, tools and the benchmark.

Pure: it compares texts. Lines are alike if they differ in space at their ends only, and lines in
succession if they differ in the indentation that all of them have.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from os.path import commonprefix
from typing import Literal, NamedTuple

from apps.lookup.citations.alignment import aligned

# ok: the lines are where they were
# moved: they are elsewhere, in the file or in the one that it became
# changed: what stood around them, or at least half of them, is there
# gone: neither is
# unknown: nothing can be said
Verdict = Literal["ok", "moved", "changed", "gone", "unknown"]
HOLDS: tuple[Verdict, ...] = ("ok", "moved")

# Lines before and after a passage that are its surroundings, without those that say nothing.
AROUND = 3
# Lines that say something, of a passage whose altered copies are looked for.
TWIN = 3
# Places at which a passage is looked for, the nearest ones: its lines may be all over a file.
MAX_PLACES = 1000
# Lines in which the surroundings of a passage are looked for.
MAX_AWAY = 100
_WORD = re.compile(r"[^\W_]+")
_TELLING = re.compile(r"[^\W_]|[^\x00-\x7f]")


class Finding(NamedTuple):
    """What has become of cited lines. start: the first of them today; None if they do not hold."""

    verdict: Verdict
    start: int | None = None


def is_telling(line: str) -> bool:
    """Whether a line says more than `}` or `---`."""
    return len(_TELLING.findall(line)) > 1


class Comparison:
    """A file as it was cited, and as it is now.

    before: its lines, or some in succession, of which the first has the number `first`
    is_whole: whether `before` are all of its lines
    """

    def __init__(
        self, before: Sequence[str], now: Sequence[str], *, first: int = 1, is_whole: bool = True
    ) -> None:
        self.before, self.now = before, now
        self.first, self.is_whole = first, is_whole
        self._old = [line.strip() for line in before]
        self._new = [line.strip() for line in now]

    @cached_property
    def _to(self) -> list[int]:
        """The index in `now` of each line of `before`; -1 for none."""
        return aligned(self._old, self._new)

    @cached_property
    def _from(self) -> dict[int, int]:
        """The opposite of `_to`."""
        return {new: old for old, new in enumerate(self._to) if new >= 0}

    @cached_property
    def _places_of(self) -> dict[str, list[int]]:
        return _places(self._new)

    @cached_property
    def _places_before(self) -> dict[str, list[int]]:
        return _places(self._old)

    @cached_property
    def is_same(self) -> bool:
        return self.is_whole and [*map(str.rstrip, self.before)] == [*map(str.rstrip, self.now)]

    def finding(self, start: int, end: int) -> Finding:
        """What has become of some lines, 1-based, both included. Blank lines around them do not
        count; of blank lines alone nothing can be said if anything has changed."""
        if self.is_same and 1 <= start <= len(self.now):
            return Finding("ok", start)
        trimmed = self._trimmed(start, end)
        if trimmed is None:
            return Finding("unknown")
        passage = _Passage(self, *trimmed)
        at = passage.place()
        return Finding(passage.loss()) if at is None else self._found(at, start, trimmed[0])

    def finding_by_text(self, start: int, end: int) -> Finding:
        """Where the lines are by their text alone: for a quote of which nothing else is known. At
        another place a line alone, or lines that are there twice, may be others."""
        trimmed = self._trimmed(start, end)
        places = self.places(*trimmed) if trimmed else []
        if not trimmed or not places:
            return Finding("gone")
        found = self._found(places[0], start, trimmed[0])
        is_little = sum(map(is_telling, self._old[slice(*trimmed)])) < 2
        is_doubtful = found.verdict == "moved" and (is_little or len(places) > 1)
        return Finding("unknown") if is_doubtful else found

    def _trimmed(self, start: int, end: int) -> tuple[int, int] | None:
        """The indexes in `before` of some lines without blank ones around them; None for none."""
        begin, stop = start - self.first, min(end - self.first + 1, len(self.before))
        full = [n for n in range(max(0, begin), stop) if self._old[n]]
        return (full[0], full[-1] + 1) if full and begin >= 0 else None

    def _found(self, at: int, start: int, begin: int) -> Finding:
        leading = begin + self.first - start
        return Finding("ok" if at == begin + self.first - 1 else "moved", max(1, at + 1 - leading))

    def places(self, begin: int, stop: int) -> list[int]:
        """Where the lines of `before[begin:stop]` are now, the nearest first."""
        size, wanted = stop - begin, _outdented(self.before[begin:stop])
        near = begin + self.first - 1
        starts = _starts(self._old[begin:stop], self._new, self._places_of, near)
        return [n for n in starts if _outdented(self.now[n : n + size]) == wanted]

    def is_unique(self, line: str) -> bool:
        """Whether both texts have a line once."""
        both = (self._places_before, self._places_of)
        return all(len(places.get(line, ())) == 1 for places in both)

    def is_repeated(self, begin: int, stop: int) -> bool:
        """Whether `before` has the lines of `before[begin:stop]` twice."""
        starts = _starts(self._old[begin:stop], self._old, self._places_before, begin)
        return any(n != begin for n in starts)


class _Passage:
    """The lines `begin` to `stop` of what a comparison has from before; neither end is blank."""

    def __init__(self, comparison: Comparison, begin: int, stop: int) -> None:
        self._all = comparison
        self._begin, self._stop = begin, stop
        self._lines = comparison._old[begin:stop]
        self._places = comparison.places(begin, stop)

    def place(self) -> int | None:
        """The index at which the passage is now; None if it is not, or if that is not certain."""
        own = self._all._to[self._begin]
        if own in self._places and self._is_certain(own):
            return own
        for at in self._places:
            if at == own or self._is_of_others(at):
                continue
            if self._needs_surroundings:
                if not self._keeps_surroundings and self._is_surrounded(at):
                    return at
            elif not (self._remains_beside(at) or self._is_doubtful(at)):
                return at
        return None

    def _is_certain(self, own: int) -> bool:
        """Whether the place that the order of all lines gives is the right one."""
        if self._is_doubtful(own):
            return False
        if not self._needs_surroundings:
            return True
        if self._is_repeated and self._before and self._after and not all(self._kept):
            # One of two equal passages in succession was deleted, perhaps.
            return False
        if self._is_surrounded(own):
            return True
        if not self._all.is_whole:
            return False
        is_near = any(self._kept) or own + 1 == self._begin + self._all.first
        return is_near and self._own_lines == sum(map(is_telling, self._lines)) > 0

    def loss(self) -> Verdict:
        """What there is instead of a passage that has no place."""
        if self._places and not self._all.is_whole:
            return "unknown"
        if self._keeps_surroundings:
            return "changed"
        lines = [line for line in self._lines if line]
        others = Counter(line for n, line in enumerate(self._all._new) if not self._is_of_other(n))
        left = (Counter(lines) & others).total()
        return "changed" if 2 * left >= len(lines) else "gone"

    @cached_property
    def _needs_surroundings(self) -> bool:
        """Whether the text alone does not say which passage it is."""
        is_partly_known = not self._all.is_whole and bool(self._before or self._after)
        return self._is_repeated or is_partly_known or self._own_lines < 2

    @cached_property
    def _is_repeated(self) -> bool:
        return len(self._places) > 1 or self._all.is_repeated(self._begin, self._stop)

    @cached_property
    def _own_lines(self) -> int:
        """How many of the lines that say something are nowhere else."""
        return sum(is_telling(line) and self._all.is_unique(line) for line in self._lines)

    @cached_property
    def _before(self) -> list[int]:
        """Indexes of the lines before that are surroundings, the nearest first."""
        return _telling(self._all._old, range(self._begin - 1, -1, -1), AROUND)

    @cached_property
    def _after(self) -> list[int]:
        return _telling(self._all._old, range(self._stop, len(self._all._old)), AROUND)

    @cached_property
    def _keeps_surroundings(self) -> bool:
        """Whether at least half of what stood around the passage is where it was."""
        count = len(self._before) + len(self._after)
        return bool(count) and 2 * sum(self._kept) >= count

    @cached_property
    def _kept(self) -> tuple[int, int]:
        """How many of the lines before and after are where they were."""
        before, after = (
            sum(self._all._to[n] >= 0 for n in side) for side in (self._before, self._after)
        )
        return before, after

    def _is_surrounded(self, at: int) -> bool:
        """Whether a place has the surroundings: a line next to it, and half of all."""
        old, new = self._all._old, self._all._new
        sides = (
            (self._before, range(at - 1, -1, -1)),
            (self._after, range(at + len(self._lines), len(new))),
        )
        if not any(indexes for indexes, _ in sides):
            # All of a file that had nothing else, or nothing is known around the passage.
            is_same_place = at + 1 == self._begin + self._all.first
            return len(self._places) == 1 and (self._all.is_whole or is_same_place)
        kept, is_beside = 0, False
        for indexes, places in sides:
            there = _telling(new, places, 2 * AROUND)
            is_beside = is_beside or self._is_beside(indexes[:1], there[:1], at)
            kept += (Counter(old[n] for n in indexes) & Counter(new[n] for n in there)).total()
        return is_beside and 2 * kept >= len(self._before) + len(self._after)

    def _is_beside(self, old: Sequence[int], new: Sequence[int], at: int) -> bool:
        """Whether the line that stood next to the passage is next to a place. In a file that is
        known in part only, it must be there once."""
        if not old or not new or self._all._old[old[0]] != self._all._new[new[0]]:
            return False
        if not self._all.is_whole and not self._all.is_unique(self._all._old[old[0]]):
            return False
        return any(map(is_telling, self._lines)) or self._is_enclosed(at)

    def _is_enclosed(self, at: int) -> bool:
        """Whether brackets are indented as they were, by themselves or with the lines next to them,
        or stand between these as they did."""
        before, now = self._all.before, self._all.now
        if before[self._begin].rstrip() == now[at].rstrip():
            return True
        if not 0 < self._begin <= at:
            return False
        old = before[self._begin - 1 : self._stop + 1]
        new = now[at - 1 : at + len(self._lines) + 1]
        size = len(self._lines) + 1
        return [old[0], *old[size:]] == [new[0], *new[size:]] or _outdented(old) == _outdented(new)

    def _is_of_other(self, index: int) -> bool:
        """Whether a line of today is one that stood outside of the passage."""
        origin = self._all._from.get(index)
        return origin is not None and not self._begin <= origin < self._stop

    def _is_of_others(self, at: int) -> bool:
        """Whether most of a place are lines that stood outside of the passage: another one with
        the same text."""
        of_others = sum(map(self._is_of_other, range(at, at + len(self._lines))))
        return 2 * of_others > len(self._lines)

    def _remains_beside(self, at: int) -> bool:
        """Whether the passage was altered where it stood, so that what is at `at` is a copy."""
        place = range(at, at + len(self._lines))
        gap = [self._all._new[n] for n in self._gap() if n not in place]
        wordy = [line for line in self._lines if is_telling(line)]
        left = (Counter(wordy) & Counter(gap)).total()
        if 2 * left >= len(wordy):
            return True
        if len(gap) > 2 * len(self._lines) + AROUND:
            return False
        return _has_half(_words(self._lines), gap)

    def _is_doubtful(self, at: int) -> bool:
        """Whether what is at another place may be a copy of a passage that was altered."""
        if at + 1 == self._begin + self._all.first:
            return False
        if not self._all.is_whole and (self._before or self._after):
            return False  # What stands around it says which one it is.
        if sum(map(is_telling, self._lines)) < TWIN:
            return not self._all.is_whole
        return self._has_twin(at)

    def _has_twin(self, at: int) -> bool:
        """Whether new lines are an altered version of a passage that has moved to `at`: then one of
        both is a copy, and nothing says which one."""
        words = _words(self._lines)
        return any(len(lines) >= TWIN and _has_half(words, lines) for lines in self._new_runs(at))

    def _new_runs(self, at: int) -> Iterator[list[str]]:
        """The lines in succession, about as many as those of the passage, that are new; of a file
        that is known in part only, all that are not at `at`."""
        new, size = self._all._new, len(self._lines)
        place = range(at, at + size)
        if not self._all.is_whole:
            for start in range(0, len(new), size):
                window = range(start, min(start + 2 * size, len(new)))
                yield [new[n] for n in window if n not in place]
            return
        others = set(self._all._old).difference(self._lines)

        def is_new(n: int) -> bool:
            return n not in self._all._from and n not in place

        for are_new, run in groupby(range(len(new)), is_new):
            # Lines that stood elsewhere have only moved.
            lines = [new[n] for n in run if new[n] not in others] if are_new else []
            if len(lines) <= 2 * size + AROUND:
                yield lines

    def _gap(self) -> range:
        """The indexes of today between what stood before and after the passage."""
        to = self._all._to
        low = next((to[n] for n in range(self._begin - 1, -1, -1) if to[n] >= 0), -1)
        ends = (to[n] for n in range(self._stop, len(to)) if to[n] >= 0)
        return range(low + 1, next(ends, len(self._all._new)))


def _places(lines: Sequence[str]) -> dict[str, list[int]]:
    """The indexes of each line."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(line, []).append(index)
    return places


def _starts(
    lines: Sequence[str], text: Sequence[str], places: dict[str, list[int]], near: int
) -> Iterator[int]:
    """The indexes at which a text has some lines, the nearest first. `places` are of its lines."""
    rarest = min(range(len(lines)), key=lambda n: len(places.get(lines[n], ())))
    starts = [n - rarest for n in places.get(lines[rarest], ()) if n >= rarest]
    starts.sort(key=lambda n: abs(n - near))
    return (n for n in starts[:MAX_PLACES] if text[n : n + len(lines)] == lines)


def _telling(lines: Sequence[str], indexes: range, most: int) -> list[int]:
    """The indexes of the first lines that say something, among the first MAX_AWAY."""
    wordy = (n for n in indexes[:MAX_AWAY] if is_telling(lines[n]))
    return list(islice(wordy, most))


def _has_half(words: Counter[str], lines: Sequence[str]) -> bool:
    return 2 * (words & _words(lines)).total() >= words.total()


def _words(lines: Sequence[str]) -> Counter[str]:
    return Counter(word for line in lines for word in _WORD.findall(line))


def _outdented(lines: Sequence[str]) -> list[str]:
    """The lines without the indentation that all of them have, and without space at their ends."""
    margin = len(
        commonprefix([line[: -len(line.lstrip()) or None] for line in lines if line.strip()])
    )
    return [line[margin:].rstrip() for line in lines]
