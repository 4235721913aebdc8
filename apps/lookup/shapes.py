"""Read the shape of a question: what it asks about a name, a file, a route or a stack trace.

The whole question must have the shape. A question with more in it has none, and is searched for as
any other. docs/questions.md has the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import re2

from apps.code.languages import known_type
from apps.code.values import words
from apps.lookup.relations.traces import Trace, read_trace
from apps.lookup.relations.types import Role
from apps.lookup.symbols.types import WORD
from apps.retrieval.ranking.rank import IDENTIFIER, QUALIFIER

ShapeName = Literal[
    "callers",
    "uses",
    "tests",
    "configuration",
    "definition",
    "implementations",
    "path",
    "steps",
    "file",
    "importers",
    "history",
    "entry points",
    "route",
    "stack trace",
    "overview",
    "commands",
    "languages",
    "modules",
]

# Characters of a question in a sentence.
MAX_QUESTION = 300
_PART = r"[A-Za-z_$][\w$]*[?!]?"
# A member may have a computed name: `actions.[FETCH]`.
_BARE = rf"{_PART}(?:(?:::|->|[.#])(?:{_PART}|\[[\w$.]{{1,60}}\]))*(?:\(\))?"
_KINDS = r"(?:function|method|class|struct|interface|trait|type|constant|variable|macro|component)"


def _name(group: str) -> str:
    """A name, in backticks or not, maybe with its kind."""
    before = rf"(?P<before_{group}>(?:the )?(?:{_KINDS} )?)"
    return rf"{before}(?P<{group}>`[^`\n]{{1,120}}`|{_BARE})(?P<after_{group}> {_KINDS})?"


_N = _name("name")
_FILE = r"(?:the )?(?:file )?(?P<file>`[^`\n]{1,200}`|[\w@+./()\[\]-]{1,200}|this file)"
_LINES = r"\d{1,7}(?: ?(?:-|to|and) ?\d{1,7})?"
_FILE_LINES = rf"(?:(?:the )?lines? (?P<lines>{_LINES}) (?:of|in) )?{_FILE}(?::(?P<at>{_LINES}))?"
_DID = r"(?:wrote|written|changed?|added|introduced|touched|modified|edited|made)"
_SO = (
    r"(?:(?:(?:written|done|made|implemented) )?(?:so|like (?:this|that)|(?:this|that) way"
    r"|the way (?:it|they) (?:is|are))|here|there|needed|necessary|exist"
    rf"|(?:(?:last|first) )?{_DID})"
)
_WHICH = r"which (?:functions?|methods?|class(?:es)?|code|files?|lines?|types?|tests?)"
_WHO = rf"(?:what|who|{_WHICH})(?: else)?"
_LIST = r"(?:(?:find|show|list|get|give)(?: me)? )?(?:all )?(?:the )?"
_METHOD = r"(?:(?P<method>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) )?"
_ROUTE = (
    r"(?:the )?(?:route |url |endpoint |path )?[`\"']?"
    rf"{_METHOD}(?P<route>/[^\s`\"'?]{{0,200}})[`\"']?"
)
_PROGRAM = (
    r"(?:it|this|(?:this|the) (?:app|application|code|codebase|framework|library|package|program"
    r"|project|repo|repository|server|service|software|system|tool))"
)
# All of it, or a repository by its name.
_WHOLE = rf"(?:{_PROGRAM}|(?P<about>[^\s?`,]{{1,100}}))"
# What "it" is depends on the question before.
_THIS = _WHOLE.replace("it|", "", 1)
_WE = r"(?:do|can|should|must) (?:i|we|you|one)"
_TESTS = r"(?:all )?(?:the |its |your )?(?:unit )?tests?(?: suite)?"
_MODULES = r"(?:modules|parts|components|packages|folders|directories|files|pieces)"
_STRUCTURE = r"(?:structure|layout|architecture|organi[sz]ation)"


@dataclass(frozen=True)
class Shape:
    """A shape of questions."""

    name: ShapeName
    answer: str  # what the answer has, for the documentation
    forms: tuple[str, ...]  # regular expressions of whole questions, in any case
    examples: tuple[str, ...]


SHAPES = (
    Shape(
        "callers",
        "the definition, the lines that call it (proven, then possible), tests; a picture",
        (
            rf"{_WHO} (?:calls?|invokes?) {_N}",
            rf"where (?:is|does) {_N} (?:get )?(?:called|invoked)(?: from)?",
            rf"{_LIST}callers of {_N}",
        ),
        ("What calls `Flask.dispatch_request`?", "Who calls dispatch_request", "callers of run()"),
    ),
    Shape(
        "importers",
        "the lines that import the file",
        (
            rf"{_WHO} (?:imports?|includes?|requires?|uses?) {_FILE}",
            rf"where is {_FILE} (?:imported|included|required|used)",
            rf"{_LIST}importers of {_FILE}",
        ),
        ("Which files import src/retry.py?", "importers of `store.js`"),
    ),
    Shape(
        "history",
        "the definition, and the commits that its lines, or those of a file, come from",
        tuple(
            form.format(about)
            for about in (_FILE_LINES, _N)
            for form in (
                rf"why (?:is|are|was|were|does|do|did) {{}} {_SO}",
                rf"(?:who|(?:what|which) commits?)(?: last)? {_DID} {{}}(?: last)?",
                rf"when (?:was|were|did) {{}} (?:(?:last|first) )?{_DID}(?: last)?",
                rf"{_LIST}(?:history|changes|commits|blame|log|authors?) (?:of|to|for) {{}}",
            )
        ),
        ("Why is `RetryPolicy` so?", "Who changed src/retry.py:12-20 last?", "history of run()"),
    ),
    Shape(
        "uses",
        "the definition, the lines with the name, tests",
        (
            rf"(?:where|how) (?:is|are) {_N} (?:used|referenced|imported|instantiated)",
            rf"{_WHO} (?:uses?|references?|imports?) {_N}",
            rf"{_LIST}(?:usages?|uses|references) (?:of|to) {_N}",
            rf"what does {_N} do,? and where is it used",
        ),
        ("Where is `TIMEOUT` used?", "usages of RetryPolicy"),
    ),
    Shape(
        "tests",
        "the definition, and the tests that call it or have its name",
        (
            rf"(?:(?:where|how) )?(?:is|are) {_N} tested",
            rf"{_WHO} (?:tests?|covers?|exercises?) {_N}",
            rf"{_LIST}tests? (?:of|for) {_N}",
            rf"{_WHO} (?:calls?|uses?) {_N} in (?:the )?tests?",
        ),
        ("Where is `RetryPolicy` tested?", "Which tests cover should_retry?"),
    ),
    Shape(
        "configuration",
        "the lines that set the name, or read it from the environment; configuration first",
        (
            rf"(?:where|how) (?:is|are) {_N} (?:configured|set|assigned)",
            rf"(?:where|how) (?:do|can|does) (?:i |you |we |one )?(?:configure|set|change) {_N}",
            rf"{_LIST}(?:configuration|settings?) of {_N}",
        ),
        ("Where is `MAX_RETRIES` configured?", "How do I set LOG_LEVEL?"),
    ),
    Shape(
        "definition",
        "the definitions of the name",
        (
            rf"where (?:is|are) {_N} (?:defined|declared|implemented|located)",
            rf"{_LIST}definitions? of {_N}",
        ),
        ("Where is `Client.get` defined?", "definition of RetryPolicy"),
    ),
    Shape(
        "implementations",
        "the type, and the types that extend or implement it; the methods that override it",
        (
            rf"{_WHO} (?:implements?|extends?|subclass(?:es)?|inherits? from|derives? from"
            rf"|overrides?) {_N}",
            rf"{_LIST}(?:subclass(?:es)?|subtypes|implementations|implementors|implementers"
            rf"|derived classes|descendants|overrides|(?:class |type )?hierarchy) of {_N}",
        ),
        ("What implements `Embedder`?", "subclasses of BaseCommand"),
    ),
    Shape(
        "path",
        "the calls that lead from one to the other, in their order; a picture",
        (
            rf"how (?:does|do|can) {_N} (?:reach|call|get to|lead to|end up in|arrive at)"
            rf" {_name('other')}",
            rf"{_LIST}(?:call )?(?:paths?|way|chain)(?: of calls)? from {_N} to {_name('other')}",
            rf"how (?:do|does) (?:we|it|one|i|you) get from {_N} to {_name('other')}",
        ),
        ("How does `Flask.wsgi_app` reach `dispatch_request`?", "path from main() to save_ship"),
    ),
    Shape(
        "steps",
        "the definition, and what it calls, in the order of the lines; a picture",
        (
            rf"what (?:does|happens in(?:side)?) {_N}(?:,? (?:do,? )?step by step| call| invoke)",
            rf"{_LIST}callees of {_N}",
        ),
        ("What does `Session.send` do, step by step?", "What does run() call?"),
    ),
    Shape(
        "file",
        "what the file defines, and who imports it",
        (
            rf"what (?:does|is) {_FILE}(?: do| for| about)",
            rf"what is (?:in|inside|the purpose of|the job of) {_FILE}",
            rf"(?:explain|describe|summari[sz]e|outline)(?: of)? {_FILE}",
        ),
        ("What does src/retry.py do?", "outline of `store.js`"),
    ),
    Shape(
        "entry points",
        "what manifests start, functions `main`, pages",
        (
            r"(?:(?:what|where) (?:is|are) )?(?:the )?(?:main )?entry[ -]?points?"
            rf"(?: (?:of|to|for) (?:{_PROGRAM}|(?P<of>[^?]{{1,100}}?)))?",
            rf"where does (?:{_PROGRAM}|(?P<start>[^?]{{1,100}}?)) (?:start|begin)"
            r"(?:,? and what happens first)?",
            r"where is (?:the )?main(?: function| method| program| file)?",
        ),
        ("Where is the entry point?", "Where does flask start, and what happens first?"),
    ),
    Shape(
        "route",
        "the routes that serve the path, and the names of what serves them",
        (
            rf"where is {_ROUTE}(?: (?:handled|served|defined|declared|implemented|registered))?",
            rf"(?:what|who|which (?:view|handler|function|controller|endpoint|code|method|class)) "
            rf"(?:serves?|handles?|answers?|implements?|is behind) {_ROUTE}",
            rf"{_LIST}(?:view|handler|controller|route) (?:of|for) {_ROUTE}",
        ),
        ("Where is route /users/login?", "Which view serves GET /api/items/5?"),
    ),
    Shape(
        "stack trace",
        "the lines of the trace that are in the repositories, innermost first",
        (),
        ("a pasted stack trace of Python, JavaScript, TypeScript, Java, Kotlin, Go, Rust or C#",),
    ),
    Shape(
        "commands",
        "the commands that build, test or run it, with the lines that say so; what starts",
        (
            rf"how {_WE} (?:run|execute|start|launch) {_TESTS}",
            rf"how to (?:run|execute|start|launch) {_TESTS}",
            rf"how are {_TESTS} (?:run|executed|started)",
            rf"(?:what|which) commands? (?:runs?|executes?) {_TESTS}",
            rf"how (?:{_WE}|to) (?P<do>build|compile|install|test|run|start|launch) {_WHOLE}"
            r"(?: locally| from source)?",
            rf"how (?:is|are) {_WHOLE} (?P<done>built|compiled|installed|tested|run|started)",
        ),
        ("How do I run the tests?", "How is this project built?", "how to install flask"),
    ),
    Shape(
        "languages",
        "the languages of its code, with files, lines and shares",
        (
            rf"(?:what|which) (?:programming )?languages? (?:is|are|does|do) {_WHOLE} "
            r"(?:written in|made of|use|contain|have)",
            r"(?:what|which) (?:programming )?languages? (?:is|are) (?:used|there)(?: here)?",
            rf"what (?:is|are) {_WHOLE} (?:written|coded|implemented|programmed) in",
            rf"how (?:big|large) is {_WHOLE}",
            rf"how many lines(?: of code)?(?: (?:are there|(?:does|has) {_WHOLE}(?: have)?))?",
        ),
        ("Which languages is this written in?", "How big is this project?"),
    ),
    Shape(
        "modules",
        "its folders with their largest parts, what starts, what most files import",
        (
            rf"how (?:is|are) {_WHOLE} (?:organi[sz]ed|structured|laid out|split(?: up)?|divided"
            r"|arranged|composed|architected)",
            rf"(?:what is )?(?:the |its )?(?:overall |general |high[- ]level |code )?{_STRUCTURE}"
            rf" of {_WHOLE}",
            rf"(?:what is )?(?:the )?(?:overall |general )?(?:project|code|codebase|folder"
            rf"|directory|file|repo|repository|package|module) {_STRUCTURE}",
            rf"(?:what|which) are the (?:main |major |most important |key |core )?{_MODULES}"
            rf"(?: (?:of|in) {_WHOLE})?(?:,? and how do they work together)?",
            r"where (?:do|should|can) (?:i|we|one) (?:start|begin)(?: reading| looking)?",
        ),
        ("How is this repository organised?", "What are the main modules of flask?"),
    ),
    Shape(
        "overview",
        "the sentence of the README, commands, languages, modules",
        (
            rf"what (?:does|do) {_THIS} do",
            rf"what is {_THIS}(?: for| about| all about| used for| good for)?",
            rf"what is the (?:purpose|goal|point|aim|job) of {_THIS}",
            rf"(?:explain|describe|summari[sz]e|introduce|tell me about) {_THIS}",
            rf"(?:what|which) (?:tech(?:nolog(?:y|ies))?|(?:tech )?stack) (?:is|does|do) {_THIS}"
            r" (?:built (?:with|on|from)|use|made (?:with|of))",
            r"(?:(?:give|show) me )?(?:an? |the )?(?:short |brief |quick |high[- ]level |general )?"
            rf"(?:overview|summary|introduction|description) (?:of|to) {_THIS}",
        ),
        ("What does this repository do?", "What is flask about?", "overview of this project"),
    ),
)
_SCOPE = (
    r"(?: (?:in|of|from) (?:(?:this|the) (?:repo|repository|project|codebase|code)"
    r"|(?P<repo>[^\s?]{1,100})))?"
)
_AND = r"(?:,? and (?:what for|why|where|how|from where))?"
_NUMBERS = re2.compile(r"\d{1,7}")
_IS = re2.compile(r"(?i)^(what|where|who|how)['’]?s\b")
# The beginning of what is done → the role of the commands; the others build.
_COMMANDS: dict[str, Role] = {"test": "tests", "run": "run", "start": "run", "launch": "run"}
_NO_NAMES = words("it this that them these those me us you he she they one i we and or")


@dataclass(frozen=True)
class Question:
    """A question that has a shape."""

    shape: ShapeName
    name: str = ""  # what it is about: a name, a path of a file, a route, or a role of commands
    other: str = ""  # the end of a path
    is_sure: bool = True  # no word of a sentence has the form of the names
    method: str = ""  # of a route, in capitals
    repository: str = ""  # as it is written; "" if it names none
    trace: Trace | None = None
    is_file: bool = False  # the name is the path of a file
    lines: tuple[int, int] | None = None  # of the file, both included


@cache
def _compiled(form: str) -> Any:
    """All forms take 70 ms, which the start of a server does not wait for."""
    return re2.compile(rf"(?i){form}{_SCOPE}{_AND}")


def read_question(text: str) -> Iterator[Question]:
    """The readings of a question, best first; none if it has no shape."""
    if trace := read_trace(text):
        yield Question("stack trace", trace=trace)
        return
    plain = _IS.sub(r"\1 is", " ".join(text.split()).strip(" ?.!"))
    if len(plain) > MAX_QUESTION:
        return
    for shape, form in ((kind.name, form) for kind in SHAPES for form in kind.forms):
        if (match := _compiled(form).fullmatch(plain)) and (question := _read(shape, match)):
            yield question


def _read(shape: ShapeName, match: Any) -> Question | None:
    groups = match.groupdict()
    named = (groups.get(group) for group in ("repo", "of", "start", "about"))
    repository = next(filter(None, named), "").strip("`")
    if repository.lower() in _NO_NAMES:
        return None
    if shape in ("entry points", "overview", "languages", "modules"):
        return Question(shape, repository=repository)
    if shape == "commands":
        done = groups.get("do") or groups.get("done") or "test"
        role = next((role for word, role in _COMMANDS.items() if done.lower().startswith(word)), "")
        return Question(shape, role or "build", repository=repository)
    if shape == "route":
        method = (groups["method"] or "").upper()
        return Question(shape, groups["route"], method=method, repository=repository)
    if shape in ("file", "importers"):
        path = groups["file"].strip("`")
        is_file = path.lower() == "this file" or known_type(path) is not None
        return Question(shape, path, repository=repository) if is_file else None
    if groups.get("file"):
        return _lines_of_file(shape, groups, repository)
    names = [groups["name"], groups.get("other") or ""]
    for group, name in zip(("name", "other"), names, strict=True):
        # "The app" is a word of the sentence, "the app function" a name.
        before, after = groups.get(f"before_{group}") or "", groups.get(f"after_{group}")
        is_word = before.lower() == "the " and not after and not _is_sure(name)
        # Names of one letter are not indexed.
        is_known = len(_plain(name)) > 1 and WORD.search(_plain(name))
        if name and (is_word or not is_known or _plain(name).lower() in _NO_NAMES):
            return None
    first, other = map(_plain, names)
    is_sure = all(_is_sure(name) for name in names if name)
    return Question(shape, first, other, is_sure, repository=repository)


def _lines_of_file(shape: ShapeName, groups: Any, repository: str) -> Question | None:
    path, _, behind = groups["file"].strip("`").partition(":")
    numbers = sorted(map(int, _NUMBERS.findall(groups["lines"] or groups["at"] or behind)))
    if path.lower() != "this file" and known_type(path) is None:
        return None
    lines = (max(1, numbers[0]), max(1, numbers[-1])) if numbers else None
    return Question(shape, path, repository=repository, is_file=True, lines=lines)


def _plain(name: str) -> str:
    return name.strip("`").removesuffix("()").strip()


def _is_sure(name: str) -> bool:
    is_call = name[:1] == "`" or name.endswith("()")
    return is_call or bool(IDENTIFIER.search(name) or QUALIFIER.search(name))
