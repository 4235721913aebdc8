"""What a search asks all sources of candidates."""

from dataclasses import dataclass
from functools import cached_property

from apps.ingest.lexical import words
from apps.ingest.types import Filters, Vectors
from apps.ingest.vectors.store import unit_rows
from apps.retrieval.ranking.question import telling, telling_stems
from apps.retrieval.scope import fits

_EVERYTHING = Filters()


@dataclass(frozen=True)
class Asked:
    """A question. `vector` None: its meaning is not known, words must do."""

    text: str
    vector: Vectors | None
    filters: Filters

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The distinct words to look for."""
        return telling(words(self.text))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Those whose rarity the ranking asks for."""
        return telling_stems(self.text)

    @cached_property
    def unit(self) -> Vectors | None:
        """The vector at unit length; None where there is none, or none that has a direction."""
        if self.vector is None:
            return None
        units, good = unit_rows(self.vector.reshape(1, -1))
        return units[0] if good[0] else None

    @property
    def is_filtered(self) -> bool:
        return self.filters != _EVERYTHING

    def fits(self, path: str, language: str) -> bool:
        """Whether a file passes the filters."""
        return not self.is_filtered or fits(self.filters, path, language)
