"""The query of a search: its wire keys, its filters, and its vector."""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from apps.code.languages import FILE_TYPES, known_type
from apps.core.errors import InvalidInput
from apps.core.values.surrogates import encodable
from apps.embedding.types import Vectors
from apps.embedding.words import stems
from apps.index import globs
from apps.index.lexical import words
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.index.types import Area, Filters, ResultPlace
from apps.index.units import unit_rows
from apps.retrieval.ranking.rank import STOPWORDS, drop_stopwords, query_stems
from apps.retrieval.repositories import RepeatedFiles, repo_id

DEFAULT_LIMIT = 5
MAX_LIMIT = 20
# Compiling a glob of a megabyte takes seconds, and SQLite refuses it.
MAX_PATH = 1_000
MAX_QUERY = 10_000  # characters; an embedding reads far fewer
MAX_ID = 255  # characters, as of the name of a root
MAX_IDS = 100
MAX_AREAS = 100  # of one question
LANGUAGES = tuple(dict.fromkeys(kind.name for kind in FILE_TYPES))
# Other names that people use.
ALIASES = {
    "c++": "cpp",
    "c#": "csharp",
    "f#": "fsharp",
    "golang": "go",
    "objective-c": "objc",
    "shell": "bash",
    "docker": "dockerfile",
    "makefile": "make",
    "assembler": "assembly",
}
# A word is rare if at most this share of the passages of the other repositories have it.
RARE_SHARE = 0.002
MIN_LETTERS = 4
_WORD_OF_ID = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NO_FILTERS = Filters()
# The argument with the areas of the chat that makes a call. Models cannot set it (`areas_of`).
AREAS = " areas"


@dataclass(frozen=True)
class Areas:
    """The value of the argument AREAS."""

    areas: tuple[Area, ...]


# Whether a passage passes, by its place and its text. It can be pickled.
PassageTest = Callable[[ResultPlace, str], bool]


@dataclass(frozen=True)
class SearchQuery:
    """What to search for."""

    text: str  # stripped, not empty, encodable as UTF-8
    repositories: tuple[str, ...] = ()  # repository ids; empty: all
    limit: int = DEFAULT_LIMIT  # 1 to MAX_LIMIT matches
    filters: Filters = field(default_factory=Filters)
    preferred: frozenset[Hashable] = frozenset()  # paths of the roots that the text names
    is_code: bool = False  # the text is code: a name in it is no wish for a repository
    # Of the search page: what each passage must pass, the only files that can (paths by the id of
    # their root), and whether the matches tell why they rank where they do.
    test: PassageTest | None = None
    only: Mapping[UUID, frozenset[str]] | None = None
    explained: bool = False
    # Set by `search`, once it knows the roots:
    vector: Vectors | None = None  # float32 (dimension,), any length; None: search by words alone
    repeated: RepeatedFiles = field(default_factory=dict)  # files to leave out

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SearchQuery":
        """Check `{query, repository?, path?, language?, limit?}` (contract.md §4.2, and filters).
        `repository` is an id or a list of ids. Unknown keys are ignored.

        Raises InvalidInput; its details.details lists all problems.
        """
        problems: list[str] = []
        text = data.get("query")
        if problem := text_problem("query", text):
            problems.append(problem)
        elif len(str(text)) > MAX_QUERY:
            problems.append(f"query must have at most {MAX_QUERY:,} characters")
        repositories = parse_repositories(data.get("repository"), problems)
        filters = parse_filters(data, problems)
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        refuse(problems)
        return cls(encodable(str(text)).strip(), repositories, limit, filters)

    def preferring_named(self, roots: Sequence[Root]) -> "SearchQuery":
        """The query that ranks matches of the roots that its text names first: by their id, or by
        a part of it that is rare in the other roots (`commons` for `commons-lang`).

        These names are taken out of the text, because other repositories are found by them too.
        They stay if they are all that the text says. Names of all roots distinguish nothing.
        """
        if self.is_code:
            return self
        text, named = self.text, set[Hashable]()
        lower = text.lower()
        words = set(_WORD_OF_ID.findall(lower))
        for root in roots:
            name = repo_id(root)
            if not (name.lower() in lower and _mention(name).search(text)):
                name = _rare_part(root, roots, words)
            text, count = _mention(name).subn(" ", text) if name else (text, 0)
            if count:
                named.add(root.path)
        if len(named) == len(roots):
            return self
        if STOPWORDS.issuperset(query_stems(text)):
            text = self.text
        return replace(self, text=" ".join(text.split()), preferred=frozenset(named))

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. The text is private and left out."""
        return log_fields(self.repositories, self.limit, self.filters)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The distinct words to look up."""
        return drop_stopwords(words(self.text))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The distinct stems whose document frequencies the ranking needs."""
        return query_stems(self.text)

    @cached_property
    def unit(self) -> Vectors | None:
        """The vector at unit length, float32 (dimension,). None if there is no vector, or if its
        length is 0 or not finite."""
        if self.vector is None:
            return None
        units, valid = unit_rows(self.vector.reshape(1, -1))
        return units[0] if valid[0] else None

    def accepts_all(self, root: Root) -> bool:
        """Whether `accepts` is true for each file of a root."""
        return self.filters == _NO_FILTERS and self.only is None and not self.repeated.get(root.id)

    def accepts(self, root: Root, path: str, language: str) -> bool:
        """Return True if a file passes the filters and no other root answers for it."""
        if path in self.repeated.get(root.id, ()):
            return False
        if self.only is not None and path not in self.only.get(root.id, ()):
            return False
        return self.filters == _NO_FILTERS or fits(self.filters, root, path, language)


@lru_cache(maxsize=1_000)
def _mention(repository: str) -> re.Pattern[str]:
    """A pattern for `in the axios repository`, where all but the id may be left out. `axios@v1` is
    another one."""
    before = r"(?:\b(?:in|of|for|from|inside|within)\s{1,9})?(?:\bthe\s{1,9})?"
    name = rf"(?<![\w./-])(?<!\w@){re.escape(repository)}(?![\w/-]|\.\w|@\w)"
    after = r"(?:['’]s\b)?(?:\s{1,9}(?:repo|repository|project|codebase)\b)?"
    return re.compile(before + name + after, re.IGNORECASE)


def _rare_part(root: Root, roots: Sequence[Root], words: Collection[str]) -> str:
    """The part of the id of a root that is one of some words and rare in the others; "" for
    none."""
    for part in _WORD_OF_ID.findall(repo_id(root).lower()):
        if len(part) >= MIN_LETTERS and part in words:
            others = [other for other in roots if other.id != root.id]
            if _is_rare(part, others):
                return str(part)
    return ""


def _is_rare(part: str, others: Sequence[Root]) -> bool:
    """Whether no other id has the word, and few of their passages."""
    if not others or any(part in repo_id(other).lower() for other in others):
        return False
    mapped = [opened_roots.get(other) for other in others]
    words = tuple(stems(part))
    counts = [max(one.counts(words).values(), default=0) for one in mapped]
    return sum(counts) <= RARE_SHARE * sum(one.chunks for one in mapped)


# --- wire keys ------------------------------------------------------------------------------------


def log_fields(repositories: Sequence[str], limit: int, filters: Filters) -> dict[str, Any]:
    """Scope and size of a query for the log."""
    filtered = {"filtered": True} if filters != _NO_FILTERS else {}
    return {"repository": ", ".join(repositories) or "all", "limit": limit, **filtered}


def invalid(*problems: str) -> InvalidInput:
    """The error that lists what is wrong with a query."""
    return InvalidInput(", ".join(problems), details={"details": [*problems]})


def refuse(problems: Sequence[str]) -> None:
    """Raise InvalidInput if anything is wrong with a query."""
    if problems:
        raise invalid(*problems)


def text_problem(name: str, value: Any) -> str:
    """What is wrong with a text that must be given; "" if nothing is."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return f"{name} is required"
    return "" if isinstance(value, str) else f"{name} must be a string"


def optional_text(data: Mapping[str, Any], name: str, most: int, problems: list[str]) -> str:
    """A text of a request that may be left out, as it was given; "" without one.

    most: characters
    """
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        problems.append(f"{name} must be a string")
    elif len(value) > most or "\0" in value:
        problems.append(f"{name} must have at most {most:,} characters, and no NUL")
    else:
        return encodable(value)
    return ""


def is_blank(value: Any) -> bool:
    """Return True for null, "", 0 and false, which count as left out. `{}` and `[]` do not."""
    return value is None or (isinstance(value, str | int | float) and not value)


def parse_repositories(value: Any, problems: list[str]) -> tuple[str, ...]:
    """The distinct ids in the key `repository`; empty values and [] mean all."""
    if is_blank(value) or value == []:
        return ()
    ids = value if isinstance(value, list) else [value]
    if not all(isinstance(repo, str) and repo.strip() for repo in ids):
        problems.append("repository must be a non-empty string when provided")
        return ()
    if len(ids) > MAX_IDS or any(len(repo) > MAX_ID for repo in ids):
        problems.append(f"repository must have at most {MAX_ID} characters, or {MAX_IDS} ids")
        return ()
    return tuple(dict.fromkeys(encodable(repo).strip() for repo in ids))


def parse_limit(
    value: Any, default: int, maximum: int, problems: list[str], *, name: str = "limit"
) -> int:
    """An integer clamped to 1..maximum; the default if it is missing or blank."""
    limit = default if is_blank(value) else value
    if isinstance(limit, bool) or not (
        isinstance(limit, int) or (isinstance(limit, float) and limit.is_integer())
    ):
        problems.append(f"{name} must be an integer")
        return default
    return max(1, min(maximum, int(limit)))


def parse_flag(value: Any, name: str, problems: list[str]) -> bool:
    """True or False; False if it is missing."""
    if value is None or value in (True, False):
        return bool(value)
    problems.append(f"{name} must be true or false")
    return False


def parse_filters(data: Mapping[str, Any], problems: list[str]) -> Filters:
    """The filters in `{path?, language?}`. Appends what is wrong to `problems`.

    `path` is relative to a repository. `language` is a name or an extension (`ts`).
    """
    path = _filter_text(data, "path", problems).removeprefix("./")
    if len(path) > MAX_PATH:
        problems.append(f"path must have at most {MAX_PATH:,} characters")
    if "\0" in path:
        problems.append("path must not hold a NUL")
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path):
        problems.append("path must be relative to the repository")
    if ".." in re.split(r"[\\/]", path):
        problems.append("path must not hold ..")
    if _has_too_many_alternatives(path):
        problems.append(f"path must stand for at most {globs.MAX_ALTERNATIVES} globs")
    name = _filter_text(data, "language", problems)
    language = language_named(name)
    if name and not language:
        problems.append(f"language is not known: {name[:40]} (known: {', '.join(LANGUAGES)})")
    areas = areas_of(data)
    # Whole repositories are a matter of `repository`, which costs nothing per file.
    return Filters(path, language, areas if any(area.path for area in areas) else ())


def _has_too_many_alternatives(path: str) -> bool:
    try:
        return not globs.patterns(path[:MAX_PATH])
    except globs.TooManyAlternatives:
        return True


def _filter_text(data: Mapping[str, Any], key: str, problems: list[str]) -> str:
    value = data.get(key)
    if is_blank(value):
        return ""
    if not isinstance(value, str) or not value.strip():
        problems.append(f"{key} must be a non-empty string when provided")
        return ""
    return encodable(value).strip()


def language_named(text: str) -> str:
    """The language with this name, in any case, or this extension; "" if there is none."""
    name = text.lower().removeprefix(".")
    name = ALIASES.get(name, name)
    if name in LANGUAGES:
        return name
    kind = known_type(f"_.{name}") if name else None
    return kind.name if kind else ""


# --- filters --------------------------------------------------------------------------------------


def fits(filters: Filters, root: Root, path: str, language: str) -> bool:
    """Return True if a file passes all filters."""
    if filters.language and language != filters.language:
        return False
    if filters.path and not globs.matches(path, filters.path):
        return False
    if filters.test is not None and not filters.test((repo_id(root), path, language)):
        return False
    return is_inside(filters.areas, root, path)


def is_inside(areas: Sequence[Area], root: Root, path: str) -> bool:
    """Return True if a file is in one of these areas, or there are none."""
    if not areas:
        return True
    repository = repo_id(root)
    return any(
        area.repository in ("", repository) and (not area.path or globs.is_in_area(path, area.path))
        for area in areas
    )


def listed(areas: Sequence[Area]) -> str:
    """The areas as text: `flask, click/src/*.py`."""
    return ", ".join(f"{a.repository or '*'}/{a.path}" if a.path else a.repository for a in areas)


def write_area(area: Area) -> str:
    """An area as one text, for forms, rows and addresses: its repository, a tab and its path."""
    return f"{area.repository}\t{area.path}" if area.path else area.repository


def read_areas(texts: Sequence[str]) -> tuple[Area, ...]:
    """The distinct areas of a form or an address. Raises InvalidInput."""
    if len(texts) > MAX_AREAS:
        raise invalid(f"Choose at most {MAX_AREAS} repositories and paths.")
    return tuple(dict.fromkeys(map(read_area, texts)))


def read_area(text: str) -> Area:
    """The opposite of `write_area`. Raises InvalidInput."""
    repository, _, path = text.partition("\t")
    problems: list[str] = []
    if "\0" in repository:
        problems.append("repository must not hold a NUL")
    repositories = parse_repositories(repository, problems)
    filters = parse_filters({"path": path}, problems)
    if not (repositories or filters.path):
        problems.append("an area needs a repository or a path")
    refuse(problems)
    return Area("".join(repositories), filters.path)


def repositories_of(areas: Sequence[Area]) -> tuple[str, ...]:
    """The distinct repositories of areas; () if one of them is in any repository."""
    names = tuple(dict.fromkeys(area.repository for area in areas))
    return () if "" in names else names


def areas_of(data: Mapping[str, Any]) -> tuple[Area, ...]:
    """The areas that a chat adds to the arguments of a call. JSON can hold none."""
    areas = data.get(AREAS)
    return areas.areas if isinstance(areas, Areas) else ()
