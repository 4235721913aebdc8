"""The passages in the results of tools: rows on the page, and what an answer may cite."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.browse.lines import fragment_url, source_url, span_of
from apps.lookup.citations.baseline import cited_at
from apps.tools.list_files import described
from apps.tools.tool import INDEX

# Kinds of rows that are lines inside a definition, and not the definition itself.
WITHIN = frozenset(
    {"", "match", "reference", "proven", "possible", "passage", "caller", "test", "mention"}
    | {"step", "frame"}
)
FOUND_BY = {
    "vector": "found by meaning",
    "words": "found by words",
    "both": "found by meaning and words",
}
MAX_FACT_CHARS = 200


@dataclass(frozen=True)
class Passage:
    """Lines of one file that a tool returned.

    start, end: 1-based, inclusive; None if unknown.
    text: the lines; "" if they are unknown.
    distance: of a search result; lower is better.
    host_path: path on the host, if known; host_path_warning: why it may be wrong.
    model: the embedding model of a search result.
    kind: kind of a symbol (`class`, `reference`), `match`, `lines`, `file`, `folder` or a role in
    Context (`caller`); "" for a search result.
    """

    repo: str
    path: str
    start: int | None
    end: int | None
    text: str
    distance: float | None
    language: str = ""
    host_path: str = ""
    host_path_warning: str = ""
    model: str = ""
    kind: str = ""
    is_weak: bool = False  # a search result that did not pass the cutoff
    within: str = ""  # the definition that has the lines, or that they are: `in Client.send`
    about: str = ""  # what else the tool says of the lines, in words
    until: int | None = None  # last line of the definition that a heading names
    focus: int = 0  # index of the line of `text` that was found; those before it are its context
    is_heading: bool = False  # a line of an outline: it names a definition, and does not show it
    cell: int = 0  # number of the cell of a notebook that has the first line; 0 of other files
    cell_line: int = 1  # that line within the cell
    # What the repository was when the tool answered (`lookup.citations`), if that is known
    commit: str = ""
    generation: int = 0
    at: str = ""

    @property
    def is_source(self) -> bool:
        """Lines that the model has read, which the list of citations has though none is cited."""
        return bool(self.text) and not (self.is_entry or self.is_heading)

    @property
    def is_entry(self) -> bool:
        """A whole file or folder, of which `text` says something."""
        return self.kind in ("file", "folder")

    @property
    def full_path(self) -> str:
        return f"{self.repo}/{self.path}"

    @property
    def directory(self) -> str:
        return self.full_path.rpartition("/")[0] + "/"

    @property
    def name(self) -> str:
        return self.full_path.rpartition("/")[2]

    @property
    def lines(self) -> str:
        return self.lines_of(self.start, self.until or self.end)

    def lines_of(self, start: int | None, end: int | None) -> str:
        """Some of its lines as a reader finds them: "371–377", or "cell 7, lines 3–9"."""
        if not self.cell or start is None or self.start is None:
            return line_range(start, end)
        first = self.cell_line + start - self.start
        last = first + (end or start) - start
        word = "line" if first == last else "lines"
        return f"cell {self.cell}, {word} {line_range(first, last)}"

    @property
    def url(self) -> str:
        return source_url(self.repo, self.path, self.start, self.end, cell=self.cell)

    @property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        return fragment_url(self.repo, self.path, self.start, self.end, cell=self.cell)

    def overlap(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and last line shared with start..end; None if there are none."""
        if self.start is None or self.end is None:
            return None
        first, last = max(self.start, start), min(self.end, end)
        return (first, last) if first <= last else None


def line_range(start: int | None, end: int | None) -> str:
    """ "371–377", "246", or "—" where the lines are not known."""
    return span_of(start, start if end is None else end) or "—"


def passages_of(result: Any) -> list[Passage]:
    """The passages in a tool's result; entries without repository or path are left out."""
    if not isinstance(result, Mapping):
        return []
    index = result.get(INDEX)
    stands = index if isinstance(index, Mapping) else {}
    passages = _rows(result) if "results" in result else _headings(result)
    return [_of_then(passage, stands) for passage in passages]


def _rows(result: Mapping[str, Any]) -> Iterator[Passage]:
    rows = result["results"]
    if not isinstance(rows, list):
        return
    answer = result.get("answer")
    shaped = answer.get("rows") if isinstance(answer, Mapping) else None
    definitions = result.get("definitions")
    is_ambiguous = isinstance(definitions, list) and len(definitions) > 1
    for row in [*(shaped if isinstance(shaped, list) else ()), *rows]:
        if (passage := _passage(row, is_ambiguous=is_ambiguous)) is not None:
            yield passage


def _of_then(passage: Passage, stands: Mapping[str, Any]) -> Passage:
    commit, generation, at = cited_at(stands.get(passage.repo))
    return replace(passage, commit=commit, generation=generation, at=at) if at else passage


def _headings(result: Mapping[str, Any]) -> Iterator[Passage]:
    """The symbols of an outline. Only the first line of each symbol is known."""
    symbols = result.get("symbols")
    waiting = list(reversed(symbols)) if isinstance(symbols, list) else []
    while waiting:
        symbol = waiting.pop()
        if not isinstance(symbol, Mapping):
            continue
        line, text = symbol.get("startLine"), symbol.get("signature") or symbol.get("name")
        row = {**result, **symbol, "endLine": line, "chunk": text, "symbol": ""}
        if (passage := _passage(row)) is not None:
            yield replace(passage, until=_line(symbol.get("endLine")), is_heading=True)
        children = symbol.get("children")
        waiting.extend(reversed(children) if isinstance(children, list) else ())


def _passage(row: Any, *, is_ambiguous: bool = False) -> Passage | None:
    """The passage of a row. is_ambiguous: its callee is one of several definitions."""
    if not isinstance(row, Mapping):
        return None
    repo, path, chunk = row.get("repo"), row.get("relPath"), row.get("chunk")
    if not (isinstance(repo, str) and isinstance(path, str) and repo and path):
        return None
    score = row.get("score")
    passage = Passage(
        repo=repo,
        path=path,
        start=_line(row.get("startLine")),
        end=_line(row.get("endLine")),
        text=chunk if isinstance(chunk, str) else _described(row),
        distance=float(score) if isinstance(score, int | float) else None,
        language=str(row.get("language") or ""),
        host_path=str(row.get("hostPath") or ""),
        host_path_warning=str(row.get("hostPathWarning") or ""),
        model=str(row.get("modelId") or ""),
        kind=str(row.get("kind") or ""),
        is_weak=row.get("weak") is True,
        within=_within(row),
        about=" · ".join(filter(None, _facts(row, is_ambiguous=is_ambiguous))),
        cell=_line(row.get("cell")) or 0,
        cell_line=_line(row.get("cellLine")) or 1,
    )
    return _with_context(passage, row)


def _with_context(passage: Passage, row: Mapping[str, Any]) -> Passage:
    """The passage with the lines around it that Grep returned: the model has read them, too."""
    before, after = (
        [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        for lines in (row.get("before"), row.get("after"))
    )
    text = passage.text.split("\n")
    start, end = passage.start, passage.end
    # Of a match that spans many lines the last are cut off.
    if not (before or after) or not start or end != start + len(text) - 1 or len(before) >= start:
        return passage
    return replace(
        passage,
        start=start - len(before),
        end=end + len(after),
        text="\n".join([*before, *text, *after]),
        focus=len(before),
        cell_line=passage.cell_line - len(before),
        within=_within(row),
        about=" · ".join(filter(None, [f"line {passage.lines}", passage.about])),
    )


def _facts(row: Mapping[str, Any], *, is_ambiguous: bool) -> Iterator[str]:
    """What a row says of its lines, beside their kind and distance."""
    if _text(row, "certainty") == "possible":
        yield "possible"
    if name := _text(row, "of"):
        yield f"of {name}"
    yield from _call(row, is_ambiguous=is_ambiguous)
    if "target" in row:
        target = _text(row, "target")
        yield f"file {target}" if target else "not among the files searched"
    if how := FOUND_BY.get(_text(row, "matchedBy")):
        yield how
    if _text(row, "match") == "word":
        yield "a word, maybe in a comment or string"


def _within(row: Mapping[str, Any]) -> str:
    symbol = _text(row, "symbol")
    if symbol and _text(row, "kind") in WITHIN:
        return f"in {symbol}"
    return symbol if symbol != _text(row, "name") else ""


def _call(row: Mapping[str, Any], *, is_ambiguous: bool) -> Iterator[str]:
    """What a line calls, where that is not plain from the question."""
    depth, callee = row.get("depth"), _text(row, "callee")
    is_far = isinstance(depth, int) and depth > 1
    if callee and (is_far or is_ambiguous):
        yield f"calls {callee}"
    if is_far:
        yield f"{depth} calls away"


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value[:MAX_FACT_CHARS] if isinstance(value, str) else ""


def _described(row: Mapping[str, Any]) -> str:
    """What a row without text says of its file: size and language, or a count of lines."""
    if isinstance(row.get("size"), int):
        try:
            return described(row)
        except (KeyError, TypeError):
            return ""  # from another program
    count = row.get("count")
    return f"{count:,} line{'' if count == 1 else 's'}" if isinstance(count, int) else ""


def _line(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
