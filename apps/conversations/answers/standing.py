"""Whether the citations of an answer still hold."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from apps.browse.lines import fragment_url, source_url
from apps.conversations.answers.citations import Citation
from apps.conversations.answers.passages import line_range
from apps.lookup.citations import HOLDS, Checked, Cited, check
from apps.lookup.citations.text import summary_of

MAX_CITATIONS = 200  # that are checked of an answer
WORDS = {"changed": "changed", "gone": "gone", "unknown": "cannot be checked"}


@dataclass(frozen=True)
class CheckedCitation:
    """A citation, and what has become of it."""

    citation: Citation
    checked: Checked

    @property
    def state(self) -> str:
        """`moved to api.py:12–20`, or what else has become of it."""
        it = self.checked
        if it.verdict == "moved" and it.start:
            return f"moved to {it.path.rpartition('/')[2]}:{line_range(it.start, it.end)}"
        return WORDS.get(it.verdict, "")

    @property
    def is_lost(self) -> bool:
        """Whether what it cites is not there any more."""
        return self.checked.verdict in ("changed", "gone")

    @property
    def url(self) -> str:
        return source_url(*self._place) if self.checked.is_ingested else self.citation.url

    @property
    def fragment(self) -> str:
        return fragment_url(*self._place) if self.checked.is_ingested else self.citation.fragment

    @property
    def _place(self) -> tuple[str, str, int | None, int | None]:
        checked = self.checked
        return self.citation.passage.repo, checked.path, checked.start, checked.end


@dataclass(frozen=True)
class Standing:
    """The citations of an answer with what has become of them."""

    citations: Sequence[CheckedCitation]

    @property
    def summary(self) -> str:
        """`5 citations, 4 still hold`, and how many cannot be checked."""
        verdicts = Counter(one.checked.verdict for one in self.citations)
        holding = sum(verdicts[verdict] for verdict in HOLDS)
        unknown = verdicts["unknown"]
        more = f", {unknown:,} cannot be checked" if unknown else ""
        return summary_of(len(self.citations), holding) + more

    @property
    def differing(self) -> list[CheckedCitation]:
        """Those that are not where they were."""
        return [one for one in self.citations if one.checked.verdict != "ok"]

    @property
    def has_lost(self) -> bool:
        """Whether an answer rests on lines that are not there any more."""
        return any(one.is_lost for one in self.citations)


def standing_of(citations: Sequence[Citation]) -> Standing:
    """Check the first MAX_CITATIONS citations of an answer."""
    citations = citations[:MAX_CITATIONS]
    checked = check(list(map(_cited, citations)))
    return Standing([CheckedCitation(*pair) for pair in zip(citations, checked, strict=True)])


def _cited(citation: Citation) -> Cited:
    passage = citation.passage
    start, text = passage.start or citation.start, passage.text.split("\n")
    # Of a heading, or of lines that were cut, the text is not that of the lines.
    is_text = passage.end == start + len(text) - 1 and not passage.is_heading
    place = passage.repo, passage.path, citation.start, citation.end
    lines = tuple(text) if is_text else ()
    # The folder may have differed from the commit: it counts only if it has the lines.
    commit = passage.commit if lines else ""
    return Cited(*place, lines, start, commit, passage.generation, passage.at)
