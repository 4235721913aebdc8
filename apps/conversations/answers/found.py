"""What a tool found, by file, as the page draws it below the tool's name."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent

from django.utils.safestring import SafeString

from apps.browse.finds import Find
from apps.browse.highlight import highlight_texts
from apps.browse.lines import fragment_url, source_url
from apps.conversations.answers.citations import Citations
from apps.conversations.answers.passages import Passage
from apps.core.values.texts import counted

MAX_PREVIEW_LINES, MAX_PREVIEW_CHARS = 4, 300
# How a search result is counted; the rows of other tools have words of their own.
PASSAGE_WORDS = ("passage", "passages")


@dataclass(frozen=True)
class FoundPassage:
    """One result of a tool, and the number of its citation, if any."""

    passage: Passage
    number: int | None
    find: Find  # what the tool looked for
    is_new_place: bool = True  # in another definition than the row above
    # The first lines that are not blank, highlighted, without their common indentation.
    preview: Sequence[SafeString] = ()

    @property
    def url(self) -> str:
        """The permalink of the lines, from which the reader can step through the matches."""
        it = self.passage
        return source_url(it.repo, it.path, it.start, it.end, **self.find.params)

    @property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        it = self.passage
        return fragment_url(it.repo, it.path, it.start, it.end, **self.find.params)

    @property
    def distance(self) -> str:
        return distance(self.passage.distance)

    @property
    def about(self) -> str:
        """What else is said of the lines. A search result has its distance in place of a kind."""
        is_measured = self.passage.kind and self.passage.distance is not None
        within = self.passage.within if self.is_new_place else ""
        measure = f"Distance: {self.distance}" if is_measured else ""
        return " · ".join(filter(None, [within, self.passage.about, measure]))


@dataclass(frozen=True)
class FoundFile:
    """The results in one file, in the order of the tool."""

    repo: str
    path: str
    matches: list[FoundPassage]
    words: tuple[str, str]  # what a result of this tool is called, singular and plural

    @property
    def first(self) -> Passage:
        return self.matches[0].passage

    @property
    def host_path(self) -> str:
        return self._first_set("host_path")

    @property
    def host_path_warning(self) -> str:
        return self._first_set("host_path_warning")

    @property
    def model(self) -> str:
        return self._first_set("model")

    @property
    def best(self) -> str:
        """The smallest distance; "—" for search results without one, "" for other rows."""
        known = [m.passage.distance for m in self.matches if m.passage.distance is not None]
        if known:
            return distance(min(known))
        return "" if all(match.passage.kind for match in self.matches) else distance(None)

    @property
    def counts(self) -> str:
        """`2 passages · 18 lines`, or `3 calls` where each is a line."""
        passages = [match.passage for match in self.matches]
        words = self.words if all(passage.kind for passage in passages) else PASSAGE_WORDS
        count = counted(len(passages), *words)
        if not any(passage.text for passage in passages):
            return f"{count} · — lines"
        lines = sum(passage.text.count("\n") + 1 for passage in passages)
        is_each_a_line = lines == len(passages) and words != PASSAGE_WORDS
        return count if is_each_a_line else f"{count} · {counted(lines, 'line', 'lines')}"

    def _first_set(self, name: str) -> str:
        values = (str(getattr(match.passage, name)) for match in self.matches)
        return next(filter(None, values), "")


def found_files(
    passages: Iterable[Passage],
    citations: Citations,
    find: Find,
    *,
    words: tuple[str, str],
) -> list[FoundFile]:
    """The passages by file, in the order of the first one of each."""
    passages = list(passages)
    files: dict[tuple[str, str], FoundFile] = {}
    for passage, preview in zip(passages, _previews(passages), strict=True):
        key = (passage.repo, passage.path)
        file = files.setdefault(key, FoundFile(*key, matches=[], words=words))
        above = file.matches[-1].passage.within if file.matches else ""
        number = citations.number_of(passage)
        is_new_place = passage.within != above
        file.matches.append(FoundPassage(passage, number, find, is_new_place, preview))
    return list(files.values())


def _previews(passages: Sequence[Passage]) -> Iterator[Sequence[SafeString]]:
    codes = [(_beginning(it), it.path, it.language) for it in passages]
    for (text, *_), lines in zip(codes, highlight_texts(codes), strict=True):
        yield lines if text else ()


def _beginning(passage: Passage) -> str:
    """What a preview shows: "" if the text is blank or unknown."""
    rest = passage.text.splitlines()[passage.focus :]
    lines = [line[:MAX_PREVIEW_CHARS] for line in rest if line.strip()]
    return dedent("\n".join(lines[:MAX_PREVIEW_LINES]))


def distance(value: float | None) -> str:
    """Three digits, or a dash where there is none."""
    return "—" if value is None else f"{value:.3f}"
