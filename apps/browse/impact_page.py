"""What the code browser shows of a change: what it affects, with a picture of the calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from django.utils.safestring import SafeString, mark_safe

from apps.browse import graph
from apps.browse.lines import code_url, fragment_url, source_url
from apps.lookup.impact import ImpactQuery, impact
from apps.lookup.impact.query import DEFAULT_BASE
from apps.retrieval.paging import finished

VIEW = "impact"
LIMIT = 200
# A kind of rows, as the page names it.
HEADINGS = {
    "changed": "Changed",
    "caller": "Callers",
    "test": "Tests that reach it",
    "importer": "Imported by",
    "together": "Changed together before",
}


class ImpactRow(NamedTuple):
    """A row. url: "" of a file that is not ingested; way: "" for none"""

    place: str
    url: str
    name: str
    badge: str
    way: str
    text: str


@dataclass(frozen=True)
class ImpactView:
    """What a change affects.

    base: as it was asked for
    hint: if nothing has changed
    next_url: "" on the last page
    """

    base: str
    groups: Sequence[tuple[str, Sequence[ImpactRow]]]  # by heading
    picture: SafeString
    notes: str
    hint: str
    next_url: str


def impact_url(repo: str) -> str:
    return source_url(repo, "", None, None, view=VIEW)


def impact_view(repo: str, data: Mapping[str, str]) -> ImpactView:
    """What has changed since `base`. Raises as `impact`."""
    base = data.get("base", "").strip()
    form = {"repository": repo, "base": base, "limit": LIMIT, "cursor": data.get("cursor", "")}
    output = finished(impact(ImpactQuery.parse(form)))
    rows = output["results"]
    following = output.get("nextCursor", "")
    return ImpactView(
        base or DEFAULT_BASE,
        [
            (HEADINGS[kind], [_row(row, repo) for row in own])
            for kind, own in groupby(rows, key=lambda row: str(row["kind"]))
        ],
        _picture(rows, repo),
        output.get("notes", ""),
        "" if rows else output.get("hint", ""),
        source_url(repo, "", None, None, view=VIEW, base=base, cursor=following)
        if following
        else "",
    )


def _row(row: Mapping[str, Any], repo: str) -> ImpactRow:
    path, start, end = row["relPath"], row["startLine"], row["endLine"]
    lines = "" if start is None else f":{start}"
    badge = row.get("change") or ("possible" if row["certainty"] == "possible" else "")
    way = " ← ".join(reversed([step["symbol"] or step["relPath"] for step in row.get("way", ())]))
    if "commits" in row:
        badge, way = f"{row['commits']} times", f"with {row['of']}"
    url = "" if badge == "removed" else source_url(repo, path, start, end)
    return ImpactRow(f"{path}{lines}", url, row.get("symbol", ""), badge, way, row["chunk"])


def _picture(rows: Sequence[Mapping[str, Any]], repo: str) -> SafeString:
    """The calls on the ways of the callers and tests; "" for none."""
    places = {
        (row["relPath"], row.get("symbol", "")): row["startLine"]
        for row in rows
        if row["kind"] == "changed"
    }
    arcs = dict.fromkeys(arc for row in rows for arc in _arcs(row, places))

    def links(path: str, line: int) -> tuple[str, str] | None:
        if not line:
            return (code_url(repo, path), fragment_url(repo, path, None, None)) if path else None
        return source_url(repo, path, line, line), fragment_url(repo, path, line, line)

    return mark_safe(graph.picture(list(arcs), links)) if arcs else mark_safe("")


def _arcs(row: Mapping[str, Any], places: Mapping[tuple[str, str], int]) -> Iterator[graph.Arc]:
    steps = row.get("way", ())
    nodes = [
        graph.Node(
            step["symbol"] or step["relPath"],
            step["relPath"],
            step.get("line") or places.get((step["relPath"], step["symbol"]), 0),
        )
        for step in steps
    ]
    for step, start, end in zip(steps, nodes, nodes[1:], strict=False):
        yield graph.Arc(start, end, step["certainty"] == "proven")
