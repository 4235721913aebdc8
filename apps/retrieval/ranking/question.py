"""What a question asks: its words and how rare they are, and the names it spells out."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from apps.embedding.words import stems

# Words that say how something is asked, not what.
_FILLERS = (
    "a an the of for in on to and or how is are does do did with from by at what where which that "
    "this it its as be when into through via using not if can why who whose than then there here "
    "was were has have had should would could will between each other"
)
FILLERS = frozenset(stems(_FILLERS))

# A name with its qualifiers: `Session`, `Sinatra::Base`, `z.pipe`, `list->map`.
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|->|[.#])[A-Za-z_$][\w$]*)*")
_QUALIFIER = re.compile(r"::|->|[.#]")
# What no word of a sentence looks like: camelCase, snake_case, qualified, HTTPError.
_SPELT = re.compile(r"[a-z0-9][A-Z]|_|::|->|[.#]\w\w|^[A-Z]{2,}[a-z]")


@lru_cache(maxsize=50_000)
def stems_of(name: str) -> frozenset[str]:
    """The stems of a declared name or a path's part; the same ones are met in every search."""
    return frozenset(stems(name))


@dataclass(frozen=True)
class Question:
    """`words` are the stems that tell something, `rarity` is the weight of each, `rarest` that of a
    word which stands nowhere; `names` are the identifiers it spells, `is_name` that it is one."""

    text: str
    words: frozenset[str]
    rarity: Mapping[str, float]
    rarest: float
    weight: float
    names: frozenset[str]
    is_name: bool

    @classmethod
    def of(
        cls, text: str, frequencies: Mapping[str, int] | None = None, total: int = 0
    ) -> "Question":
        """`frequencies`: in how many of `total` passages each stem stands; without them all words
        count alike."""
        known = frequencies or {}
        rarity = {
            stem: _rarity(min(known.get(stem, 0), total), total) for stem in telling_stems(text)
        }
        names = frozenset(_names(text))
        return cls(
            text=text,
            words=frozenset(rarity),
            rarity=rarity,
            rarest=_rarity(0, total),
            weight=sum(rarity.values()),
            names=names,
            is_name=bool(names) and len(text.split()) == 1,
        )

    def agreement(self, parts: frozenset[str]) -> float:
        """How well a name fits, by its stems: 1.0 where it says all that the question says and
        nothing else.

        The harmonic mean of the share of the name that the question says and the share of the
        question that the name says, words weighed by their rarity.
        """
        if self.words.isdisjoint(parts):
            return 0.0
        shared = parts & self.words
        both = sum([self.rarity[part] for part in shared])
        of_name = both + self.rarest * (len(parts) - len(shared))
        return 2 * both / (of_name + self.weight)

    @cached_property
    def parts_of_names(self) -> frozenset[frozenset[str]]:
        """The stems of each name it spells."""
        return frozenset(map(stems_of, self.names))

    def asks_for(self, words: frozenset[str]) -> bool:
        """Whether it says one of these stems."""
        return not words.isdisjoint(self.words)


def telling_stems(text: str) -> tuple[str, ...]:
    """The distinct stems of a question without fillers; with them where there is nothing else."""
    return telling(stems(text))


def telling(words: Iterable[str]) -> tuple[str, ...]:
    """The distinct ones of some words or stems, without those that only say how something is asked;
    with them where there is nothing else."""
    found = tuple(dict.fromkeys(words))
    return tuple(word for word in found if word not in FILLERS) or found


def _names(text: str) -> list[str]:
    """The identifiers in a question, without their qualifiers. A single word is one."""
    found = _NAME.findall(text)
    alone = len(text.split()) == 1
    return [_QUALIFIER.split(name)[-1] for name in found if alone or _SPELT.search(name)]


def _rarity(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) if total else 1.0
