"""Example questions about a repository, made from its own definitions and the calls between them.

"How does `Flask.wsgi_app` reach `dispatch_request`?" is asked only if the call graph proves a path
between the two: the first calls a function that calls the second. The largest source files are
read, for a limited time; what they do not show is not asked about.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from apps.code.callgraph.callers import targets
from apps.code.callgraph.facts import MODULE, PRIVATE, PROTOTYPE, Definition
from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.languages import known_type
from apps.code.paths import TEST_WORDS, kinds
from apps.core.errors import CodeinfoError
from apps.index.models import Root
from apps.index.queries import generation_files
from apps.index.query_cache import per_generation
from apps.index.symbols import outline_of
from apps.lookup.deadline import Deadline
from apps.lookup.relations.types import ASIDE
from apps.lookup.symbols import SymbolQuery, find_definitions
from apps.lookup.symbols.project import Key, RootProject
from apps.retrieval.query import SearchQuery
from apps.retrieval.repositories import repo_id
from apps.retrieval.results import Match
from apps.retrieval.search import search

QUESTIONS = 4
# Limits of what is read to make them.
SECONDS = 2.5
MAX_ROWS = 400
MAX_FILES = 24
MAX_CALLS = 6_000
MAX_SEARCHES = 40
# Shorter names say too little, and are found everywhere.
MIN_NAME = 4
# Kinds of files that are not the product's own code.
NOT_CODE = ASIDE | {"data"}
TYPES = frozenset({"class", "interface", "struct", "trait", "type"})
OUTLINED = TYPES | {"function", "method"}
GENERAL = (
    "What are the main parts of {name}, and how do they work together?",
    "Where does {name} start, and what happens first?",
    "How are errors handled in {name}?",
    "How is {name} configured?",
)

_NAMED = re.compile(r"`([^`]+)`")


@per_generation
def questions_about(root: Root) -> tuple[str, ...]:
    """Return QUESTIONS questions, those about calls first. They have Markdown code spans."""
    try:
        shows = _Answers(root)
        questions = list(dict.fromkeys(islice(_from_code(root, shows), QUESTIONS)))
        if len(questions) < QUESTIONS:
            questions += _from_outlines(root, QUESTIONS - len(questions), questions, shows)
    except CodeinfoError:
        # The stores are away: the questions need none of them.
        questions = []
    general = (text.format(name=repo_id(root)) for text in GENERAL)
    return (*questions, *general)[:QUESTIONS]


class _Answers:
    """Whether the first passage that is found for a question holds a definition that it names: what
    opens first would be a wrong answer otherwise. After MAX_SEARCHES none counts."""

    def __init__(self, root: Root) -> None:
        self._repository = repo_id(root)
        self._left = MAX_SEARCHES

    def __call__(self, question: str) -> bool:
        """Raises as `search`."""
        if not self._left:
            return False
        self._left -= 1
        text = question.replace("`", "")
        matches = search(SearchQuery(text, (self._repository,), 1)).matches
        return any(
            self._holds(match, name) for match in matches for name in _NAMED.findall(question)
        )

    def _holds(self, match: Match, name: str) -> bool:
        query = SymbolQuery.parse({"name": name, "repository": self._repository})
        first, last = match.start_line or 0, match.end_line or 0
        return any(
            result.place.path == match.rel_path and first <= result.start_line <= last
            for result in find_definitions(query).results
        )


@dataclass
class _Graph:
    """Definitions of some files, and the proven calls between them."""

    project: RootProject
    calls: dict[Key, dict[Key, None]] = field(default_factory=lambda: defaultdict(dict))
    callers: dict[Key, set[Key]] = field(default_factory=lambda: defaultdict(set))

    def is_public(self, key: Key) -> bool:
        """Whether a question may name the definition: of this repository's own code, and with a
        name that stands for itself."""
        definition = self.project.definition(key)
        definitions = self.project.known(key[0]).definitions
        if (
            len(definition.name) < MIN_NAME
            or definition.name.startswith("_")
            or kinds(key[0]) & NOT_CODE
        ):
            return False
        if PROTOTYPE in definition.flags or PRIVATE in definition.flags:
            return False
        if key[0].endswith(".go") and not definition.name[:1].isupper():
            return False
        while definition.scope != MODULE:
            if definition.name in TEST_WORDS:
                return False
            definition = definitions[definition.scope]
            if definition.kind == "function":
                return False
        return definition.name not in TEST_WORDS


def _from_code(root: Root, shows: _Answers) -> Iterator[str]:
    """Questions from the call graph, the best of each kind first."""
    project = RootProject(root, Deadline(SECONDS))
    paths = [path for path, language in _files(root) if language in BY_LANGUAGE][:MAX_FILES]
    if not paths:
        return
    project.read(paths)
    graph = _graph(project, paths)
    named: set[str] = set()
    kinds_of_question = (_reaching, _called, _steps, _classes, _reaching, _steps, _called, _classes)
    for make in kinds_of_question:
        for question, names in make(graph, paths):
            if not named & names and shows(question):
                named |= names
                yield question
                break


def _files(root: Root) -> list[tuple[str, str]]:
    """Path and language of the source files with the most chunks."""
    rows = generation_files(root).ingested().exclude(language="").order_by("-chunks", "path")
    files = rows.values_list("path", "language")[:MAX_ROWS]
    return [(path, language) for path, language in files if not kinds(path) & NOT_CODE]


def _graph(project: RootProject, paths: Sequence[str]) -> _Graph:
    graph = _Graph(project)
    left = MAX_CALLS
    for path in paths:
        facts = graph.project.known(path)
        for call in facts.calls:
            if not left or project.deadline.is_over:
                return graph
            left -= 1
            if (scope := facts.named_scope(call.scope)) == MODULE:
                continue
            caller = (path, scope)
            for target in targets(project.resolver, path, call):
                callee = (target.path, target.number)
                if target.proven and callee != caller:
                    graph.calls[caller][callee] = None
                    graph.callers[callee].add(caller)
    return graph


def _reaching(graph: _Graph, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """A way of two calls, from a definition that leads to many others."""
    starts = [key for key in list(graph.calls) if graph.is_public(key)]
    for start in sorted(starts, key=lambda key: (-_reach(graph, key), key)):
        first = graph.calls[start]
        ends = {
            end: middle
            for middle in first
            for end in graph.calls.get(middle, ())
            if end != start and end not in first and graph.is_public(end)
        }
        ordered = sorted(ends, key=lambda key: (-len(graph.calls.get(key, ())), key))
        for end in ordered:
            one, middle, other = map(graph.project.definition, (start, ends[end], end))
            if len({one.name, middle.name, other.name}) == 3:
                names = {one.path, other.path}
                yield f"How does `{one.path}` reach `{_short(one, other)}`?", names


def _reach(graph: _Graph, start: Key) -> int:
    """The number of definitions within three calls."""
    seen = {start}
    front = [start]
    for _ in range(3):
        front = [end for key in front for end in graph.calls.get(key, ()) if end not in seen]
        seen.update(front)
    return len(seen)


def _short(beside: Definition, each: Definition) -> str:
    """The name without the scope that both share."""
    scope = beside.path.removesuffix(beside.name)
    return each.name if scope and each.path == scope + each.name else each.path


def _called(graph: _Graph, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """A function that several others call."""
    return _with_several(graph, graph.callers, "What calls `{}`, and what for?")


def _steps(graph: _Graph, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """A function that calls several others."""
    return _with_several(graph, graph.calls, "What does `{}` do, step by step?")


def _with_several(
    graph: _Graph, table: Mapping[Key, Collection[Key]], text: str
) -> Iterator[tuple[str, set[str]]]:
    several = [key for key, others in table.items() if len(others) > 1 and graph.is_public(key)]
    for key in sorted(several, key=lambda key: (-len(table[key]), key)):
        definition = graph.project.definition(key)
        if definition.kind == "function":
            yield text.format(definition.path), {definition.path}


def _classes(graph: _Graph, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """A class with many members."""
    members: Counter[Key] = Counter()
    for path in paths:
        for member in graph.project.known(path).definitions:
            if member.scope != MODULE and member.kind == "function":
                members[path, member.scope] += 1
    for key, count in members.most_common():
        definition = graph.project.definition(key)
        if count > 1 and definition.kind == "class" and graph.is_public(key):
            yield f"What is `{definition.path}` responsible for?", {definition.path}


def _from_outlines(root: Root, count: int, known: Sequence[str], shows: _Answers) -> list[str]:
    """Questions about definitions of languages without a call graph, one for each file."""
    questions: list[str] = []
    files = [path for path, _ in _files(root) if (kind := known_type(path)) and kind.grammar]
    rows = generation_files(root).ingested().filter(path__in=files[:MAX_FILES])
    documents = dict(rows.values_list("path", "document"))
    for path in files[:MAX_FILES]:
        symbols = outline_of(root, documents[path])
        public = [
            symbol
            for symbol in symbols
            if symbol.kind in OUTLINED and len(symbol.name) >= MIN_NAME and symbol.name[0] != "_"
        ]
        if not public:
            continue
        longest = max(public, key=lambda one: (one.kind in TYPES, one.end_line - one.start_line))
        text = f"What does `{longest.path}` do, and where is it used?"
        if f"`{longest.path}`" not in " ".join((*known, *questions)) and shows(text):
            questions.append(text)
        if len(questions) >= count:
            break
    return questions[:count]
