"""Names are the field's own words: what docs/architecture.md replaced does not come back."""

import io
import tokenize

import pytest

from tests.house.sources import name_of, product

pytestmark = pytest.mark.door

REPLACED = frozenset(
    """
    courtesy Courtesy give_way pace Pace Voice breathe Patience patiently mend wanting
    GivenUp heart Spelt spelt spelled Held held _Shelf _Wish Asked asked Said said Heard
    heard Told told Side Gathered telling telling_stems FILLERS often shares rarity settle
    _thin_out Era tells_the_model sealed unheard DOOR abroad Beneath remember on_behalf_of
    carrying go_on recipe CUT Stamp proves Sighting Spot truth knobs Knobs knob KNOBS
    running_turn IdleTimeout Found Row Text Compared Asker LateStays
    """.split()  # noqa: SIM905
)


def test_no_name_is_one_that_was_replaced() -> None:
    found: dict[str, set[str]] = {}
    for file in product():
        with file.open("rb") as source:
            tokens = tokenize.tokenize(io.BytesIO(source.read()).readline)
            names = {token.string for token in tokens if token.type == tokenize.NAME}
        if left := names & REPLACED:
            found[name_of(file)] = left
    assert found == {}
