"""What the names in the search box stand for: languages, paths, repositories, refs and symbols."""

from dataclasses import replace
from functools import cached_property

from apps.browse.box import Box
from apps.browse.search_syntax import MAX_SHOWN, MAX_TERMS
from apps.browse.search_tree import Term, path_filter
from apps.core.errors import NotFound
from apps.index import queries
from apps.index.models import Root
from apps.lookup.symbols.definitions import lines_defining
from apps.retrieval.query import MAX_QUERY, invalid, language_named, parse_filters
from apps.retrieval.repositories import find_root, repo_id

UNKNOWN_LANGUAGE = "this is not a language that codeinfo knows"


def read_box(text: str) -> Box:
    """The box with all names looked up; unknown ones are words, and a hint says so.

    Raises InvalidInput with details.details if it is too long or has too many conditions, and
    Conflict INGEST_REQUIRED for a symbol in an empty index.
    """
    if len(text) > MAX_QUERY:
        raise invalid(f"a search has at most {MAX_QUERY:,} characters")
    box = Box.parse(text, Names())
    moved = {term for terms in box.fields.values() for term in terms}
    if len(set(box.conditions) - moved) > MAX_TERMS:
        raise invalid(f"at most {MAX_TERMS} texts, filters and words to leave out")
    hints, defined = list(box.hints), set[tuple[str, str, str, int]]()
    for term in dict.fromkeys(t for t in box.conditions if t.kind == "sym"):
        lines = lines_defining(term.text, ignore_case=term.ignore_case)
        defined |= {(term.text, *line) for line in lines}
        hints += [] if lines else [f"{term.source[:MAX_SHOWN]}: nothing with this name is defined"]
    return replace(box, hints=tuple(hints), defined=frozenset(defined))


class Names:
    """Resolves the value of a filter to the name that it stands for, or says what is wrong."""

    def __call__(self, term: Term) -> Term | str:
        match term.kind:
            case "lang":
                name = language_named(term.text)
                return replace(term, text=name) if name else UNKNOWN_LANGUAGE
            case "file":
                problems: list[str] = []
                parse_filters({"path": path_filter(term.text)}, problems)
                return ", ".join(problems) or term
            case "repo":
                return self._repository(term)
            case "rev" if not any(repo_id(r).endswith(f"@{term.text}") for r in self._roots):
                return f"no repository is ingested as name@{term.text[:MAX_SHOWN]}"
        return term

    def _repository(self, term: Term) -> Term | str:
        try:
            return replace(term, text=repo_id(find_root(term.text, self._roots)))
        except NotFound:
            if any(repo_id(root).startswith(f"{term.text}@") for root in self._roots):
                return term  # it is ingested at refs only
            return f"no repository named “{term.text[:MAX_SHOWN]}” is ingested"

    @cached_property
    def _roots(self) -> list[Root]:
        return queries.published_roots()
