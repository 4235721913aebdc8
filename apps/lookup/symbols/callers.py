"""Find the calls of a definition: candidates by name, then the resolver of the call graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from apps.code.callgraph.callers import ancestors, targets, unresolved
from apps.code.callgraph.facts import MEMBER, MODULE, Binding, Call, Import
from apps.code.callgraph.languages import rules_for
from apps.code.paths import kinds
from apps.index.models import Root
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.symbols.call_types import CalledDefinition, Caller, Callers, CallersQuery
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.definitions import defined_in
from apps.lookup.symbols.project import PARSE_SECONDS, Key, RootProject
from apps.lookup.symbols.references import MAX_LINE
from apps.lookup.symbols.types import LAST_FILES, MAX_LIMIT, WORD, SymbolQuery, longest_word
from apps.retrieval.overlaps import once, repeated_files
from apps.retrieval.paging import Pager
from apps.retrieval.query import is_inside
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

# Limits of one query: definitions that are asked for, files with the name.
MAX_DEFINITIONS = 100
MAX_FILES = 600
# Other names of a definition in files that import it by them.
MAX_ALIASES = 8
# Callers whose callers are found at the next depth.
MAX_NEXT = 20
# Files that are imported by the name of their folder.
FOLDER_FILES = frozenset({"__init__", "index", "mod", "lib", "main"})
# The name of a definition without a name that a file exports, such as a component of Vue.
DEFAULT = "default"
CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor"})


class CallSite(NamedTuple):
    """A call that means one of the targets."""

    path: str
    call: Call
    callee: Key
    proven: bool


@dataclass
class CallSearch:
    """The search in one root."""

    project: RootProject
    query: SymbolQuery
    cut: int = 0  # files with the name beyond MAX_FILES
    unresolved: int = 0  # calls of the name on objects of unknown type

    def sites(self, wanted: Sequence[Key]) -> list[CallSite]:
        """The calls of some definitions."""
        keys = {*wanted, *self._classes(wanted)}
        names = {self.project.definition(key).name for key in keys}
        overridden = {
            ancestor for key in wanted for ancestor in ancestors(self.project.resolver, *key)
        } - keys
        sites: dict[tuple[str, int, int], CallSite] = {}
        paths = self._candidates(names, keys)
        if aliases := self._exported_aliases(paths, names, {path for path, _ in keys}):
            names |= aliases
            paths = list(dict.fromkeys([*paths, *self._candidates(aliases, keys)]))
        if DEFAULT in names:  # which templates use by names that follow from the path
            names |= {one for path, _ in keys for one in self._other_names(path)}
        for path in paths:
            called = names | self._aliases(path, names)
            for call in self.project.known(path).calls:
                if call.chain[-1] not in called:
                    continue
                if (site := self._site(path, call, keys, overridden)) is not None:
                    sites.setdefault((path, call.row, call.column), site)
        return list(sites.values())

    def _site(self, path: str, call: Call, keys: set[Key], overridden: set[Key]) -> CallSite | None:
        meant = targets(self.project.resolver, path, call)
        for target in meant:
            if (target.path, target.number) in keys:
                return CallSite(path, call, (target.path, target.number), target.proven)
        for target in meant:
            if (target.path, target.number) in overridden:
                # The object may be of a subclass that overrides the method.
                return CallSite(path, call, (target.path, target.number), False)
        if not meant and unresolved(self.project.resolver, path, call):
            self.unresolved += 1
        return None

    def _classes(self, wanted: Sequence[Key]) -> Iterator[Key]:
        """The classes of constructors: a call of the class calls them."""
        for path, index in wanted:
            definition = self.project.definition((path, index))
            if definition.name in CONSTRUCTORS and definition.scope != MODULE:
                yield path, definition.scope

    def _candidates(self, names: set[str], keys: set[Key]) -> list[str]:
        """The files that have one of the names, near ones and the product's own first."""
        words = set(names)
        for path, index in keys:
            facts = self.project.known(path)
            name = facts.definitions[index].name
            words |= {
                imported.name
                for imported in facts.imports
                if imported.exported and imported.member == name
            }
            if name == DEFAULT or DEFAULT in facts.exports or "=" in facts.exports:
                words.add(stem(path))
                words |= self._other_names(path)
        files = dict.fromkeys(path for path, _ in keys)
        for word in sorted(words - {DEFAULT, "=", "*"}):
            files |= dict.fromkeys(self.project.with_word(longest_word(word)))
        folders = {path.rpartition("/")[0] for path, _ in keys}
        # Languages do not call each other.
        languages = {language for path, _ in keys for language in rules_for(path).family}
        ordered = sorted(
            (path for path in files if self._passes(path, languages)),
            key=lambda path: (
                bool(kinds(path) & LAST_FILES),
                path.rpartition("/")[0] not in folders,
            ),
        )
        self.cut += max(0, len(ordered) - MAX_FILES)
        self.project.read(ordered[:MAX_FILES])
        return ordered[:MAX_FILES]

    def _other_names(self, path: str) -> set[str]:
        return set(rules_for(path).other_names(self.project, path))

    def _passes(self, path: str, languages: set[str]) -> bool:
        language = self.project.language(path)
        return language in languages and self.query.takes(self.project.root, path, language)

    def _exported_aliases(
        self, paths: Sequence[str], names: set[str], targets: set[str]
    ) -> set[str]:
        """Other names under which files offer what may be one of the names, or the default export
        of one of the files `targets`, to their importers."""
        aliases: dict[str, None] = {}
        for path in paths:
            aliases |= dict.fromkeys(self._offered(path, names, targets))
        known = {*names, DEFAULT}
        new = [name for name in aliases if name not in known and WORD.fullmatch(name)]
        return set(new[:MAX_ALIASES])

    def _offered(self, path: str, names: set[str], targets: set[str]) -> Iterator[str]:
        facts = self.project.known(path)
        ending = (one for one in facts.bindings if one.value[-1] == DEFAULT)  # few
        defaults = {one.value[0] for one in ending if _is_default(one)}
        late: set[str] = set()  # modules that are imported amid an expression
        for imported in facts.imports:
            is_default = imported.member == DEFAULT and imported.exported
            may_lead = is_default or (not imported.member and imported.name in defaults)
            is_target = may_lead and self._leads(path, imported, targets)  # takes longest
            if is_target and not imported.member:
                late.add(imported.name)
            elif imported.scope == MODULE and (imported.member in names or is_target):
                yield imported.name
        for binding in facts.bindings:
            is_late = binding.value[0] in late and _is_default(binding)
            if is_late or binding.value[-1] in names:
                member = binding.name.removeprefix(MEMBER.format(""))
                if binding.scope == MODULE or member != binding.name:
                    yield member

    def _leads(self, path: str, imported: Import, targets: set[str]) -> bool:
        """Whether an import in a file means one of the files `targets`."""
        rules = rules_for(path)
        return not targets.isdisjoint(rules.import_paths(self.project, path, imported))

    def _aliases(self, path: str, names: set[str]) -> set[str]:
        """Other names that a file gives to what may be one of the names."""
        facts = self.project.known(path)
        members = names | {DEFAULT, "=", ""}
        aliases = {imported.name for imported in facts.imports if imported.member in members}
        bound = {
            binding.name
            for binding in facts.bindings
            if binding.value[-1] in members and (binding.value[-1] in names or _is_default(binding))
        }
        return aliases | bound | {DEFAULT}


def _is_default(binding: Binding) -> bool:
    """Whether it binds the default export of something."""
    return binding.value[1:] == (DEFAULT,)


def stem(path: str) -> str:
    """The name by which other files import a file: its own, or that of its folder."""
    folder, _, name = path.rpartition("/")
    plain = name.partition(".")[0]
    return folder.rpartition("/")[2] if plain in FOLDER_FILES else plain


@marked
def find_callers(query: CallersQuery, deadline: Deadline | None = None) -> Callers:
    """The callers of a definition, or of every definition of a name.

    deadline: of the answer that the callers are for; None: in PARSE_SECONDS

    Raises InvalidInput CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, and NotFound
    REPO_NOT_FOUND.
    """
    symbol = query.symbol
    roots, filters = narrowed(roots_named(symbol.repositories), symbol.filters)
    pager = Pager.of("FindCallers", query, roots)
    symbol = replace(symbol, filters=filters)
    until = deadline or Deadline(PARSE_SECONDS)
    searches: list[CallSearch] = []
    definitions: list[CalledDefinition] = []

    def in_root(root: Root) -> list[Caller]:
        project = RootProject(root, until)
        search = CallSearch(project, symbol)
        searches.append(search)
        wanted = wanted_definitions(project, query)
        definitions.extend(
            _described(project, [key for key in wanted if is_inside(filters.areas, root, key[0])])
        )
        return list(_by_depth(search, wanted, query.depth))

    callers = collect_symbols(roots, in_root)
    callers = once(callers, repeated_files(roots, filters))
    definitions = once(definitions, repeated_files(roots, Filters(areas=filters.areas)))
    callers.sort(key=_order)
    notes = _notes(searches, symbol.last, 0 if deadline else len(until.unread))
    page_of, page = pager.page(callers, symbol.limit, _order)
    truncated = page.more or bool(until.unread) or any(of_root.cut for of_root in searches)
    shown = tuple(_with_text(searches, page_of))
    named = tuple(definitions[:MAX_LIMIT])
    return Callers(query.shown, shown, truncated, notes, page=page, definitions=named)


def callers_in(root: Root, query: CallersQuery, deadline: Deadline) -> Sequence[Caller]:
    """The first callers in one root, as `find_callers` orders them, without their texts."""
    search = CallSearch(RootProject(root, deadline), query.symbol)
    callers = _by_depth(search, wanted_definitions(search.project, query), query.depth)
    return sorted(callers, key=_order)[: query.symbol.limit]


def _order(each: Caller) -> tuple[int, bool, bool, str, str, int, int, str]:
    place = (each.place.repo, each.place.path, each.line, each.column, each.callee)
    return each.depth, each.kind != "proven", each.place.is_last, *place


def wanted_definitions(project: RootProject, query: CallersQuery) -> list[Key]:
    """The definitions that a query means in one root."""
    if query.path:
        index = project.known(query.path).around(query.line - 1)
        return [] if index == MODULE else [(query.path, index)]
    symbols = defined_in(project.root, query.symbol.name)[:MAX_DEFINITIONS]
    project.read(symbol.file_path for symbol in symbols)
    keys: dict[Key, None] = {}
    for symbol in symbols:
        facts = project.known(symbol.file_path)
        for index, one in enumerate(facts.definitions):
            is_inside = symbol.start_line - 1 <= one.row <= symbol.end_line - 1
            is_named = one.name == (DEFAULT if symbol.kind == "component" else symbol.name)
            if is_named and is_inside:
                keys[symbol.file_path, index] = None
                break
    return list(keys)


def _described(project: RootProject, keys: Sequence[Key]) -> Iterator[CalledDefinition]:
    for path, index in keys:
        definition = project.definition((path, index))
        shown = shown_name(path, definition.path)
        yield CalledDefinition(project.place(path), shown, definition.row + 1)


def shown_name(path: str, symbol: str) -> str:
    """The path of a definition; the name of the file for what it exports without a name."""
    return stem(path) if symbol == DEFAULT else symbol


def _by_depth(search: CallSearch, wanted: Sequence[Key], depth: int) -> Iterator[Caller]:
    known = set(wanted)
    for level in range(1, depth + 1):
        sites = search.sites(wanted) if wanted else []
        following: dict[Key, None] = {}
        for site in sites:
            facts = search.project.known(site.path)
            yield _caller(search, site, level)
            scope = facts.named_scope(site.call.scope)
            if site.proven and scope != MODULE and (site.path, scope) not in known:
                following[site.path, scope] = None
        wanted = list(following)[:MAX_NEXT]
        known |= following.keys()
        search.cut += max(0, len(following) - MAX_NEXT) if level < depth else 0


def _caller(search: CallSearch, site: CallSite, depth: int) -> Caller:
    path, index = site.callee
    return Caller(
        place=search.project.place(site.path),
        line=site.call.row + 1,
        column=site.call.column + 1,
        text="",
        symbol=shown_name(site.path, search.project.known(site.path).enclosing(site.call.scope)),
        callee=shown_name(path, search.project.definition(site.callee).path),
        kind="proven" if site.proven else "possible",
        depth=depth,
    )


def _with_text(searches: Sequence[CallSearch], callers: Sequence[Caller]) -> Iterator[Caller]:
    """The callers with the text of their lines."""
    texts = {
        search.project.root.id: search.project.texts_of(
            {
                caller.place.path
                for caller in callers
                if caller.place.root.id == search.project.root.id
            }
        )
        for search in searches
    }
    for caller in callers:
        text = texts[caller.place.root.id].get(caller.place.path, "")
        (line,) = text.split("\n", caller.line)[caller.line - 1 : caller.line] or [""]
        yield replace(caller, text=line.removesuffix("\r")[:MAX_LINE])


def _notes(searches: Sequence[CallSearch], name: str, missed: int) -> str:
    """What was not looked at."""
    missed += sum(search.cut for search in searches)
    unknown = sum(search.unresolved for search in searches)
    notes = []
    if missed:
        notes.append(
            f"Files that may call it, but were not looked at: {missed}. Ask again, or narrow by"
            " `repository`, `path` or `language`."
        )
    if unknown:
        notes.append(
            f"Calls of {name} on objects of unknown type, which FindReferences lists: {unknown}."
        )
    return " ".join(notes)
