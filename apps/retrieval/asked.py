"""What a search asks all sources of candidates."""

from dataclasses import dataclass, field
from functools import cached_property

from apps.embedding.types import Vectors
from apps.index.lexical import words
from apps.index.models import Root
from apps.index.types import Filters
from apps.index.vectors.packing import unit_rows
from apps.retrieval.overlaps import Repeated
from apps.retrieval.ranking.question import telling, telling_stems
from apps.retrieval.scope import fits

_EVERYTHING = Filters()


@dataclass(frozen=True)
class Asked:
    """A question. `vector` None: its meaning is not known, words must do. `repeated`: the files of
    a root that another one answers for."""

    text: str
    vector: Vectors | None
    filters: Filters
    repeated: Repeated = field(default_factory=dict)

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
        return self.filters != _EVERYTHING or bool(self.repeated)

    def fits(self, root: Root, path: str, language: str) -> bool:
        """Whether a file passes the filters, and its root answers for it."""
        if path in self.repeated.get(root.id, ()):
            return False
        return self.filters == _EVERYTHING or fits(self.filters, path, language)
