"""Makes questions from the files of a checkout, with the lines that answer them, by rule.

    messages     a literal of a raise, throw or log, its gaps filled with values: the literal's line
    identifiers  a name that occurs after a dot only, so it is declared elsewhere: its lines
    definitions  the name of a class or function: the lines that define it
    configuration  a variable of the environment, or a key of a file of settings: the lines that
                 give it a value or read it from the environment
    negative     a word that no file has: no line

A checkout always gives the same questions: candidates are ordered by a hash. Names and messages of
tests, examples and documents are left out, but a line that answers may be in any file.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

from benchmarks.retrieval.questions import Question, Repository, Target, folder_of

PER_KIND = 8  # questions of each kind about one repository
PER_CONFIGURATION = 11  # of a repository that has some: six have no file of settings
KINDS = ("messages", "identifiers", "definitions", "configuration", "negative")
MAX_ANSWERS = 3  # lines that answer; more are no answer
MAX_BYTES = 400_000
_listed = re.compile(r"\w+").findall
CODE = frozenset(
    _listed(
        "py rb cs java sh bash bats ex exs go hs scala h hpp cc cpp rs php swift lua js cjs mjs "
        "ts cts mts tsx"
    )
)
# A line that answers, and the path of its file.
Lines = Mapping[str, Sequence[str]]

_ASIDE = re.compile(
    r"(^|[/_.-])(tests?|spec|examples?|docs?|bench\w*|fixtures?|testing|dist)([/_.-]|$)", re.I
)
_COMMENT = re.compile(r"\s*(#|//|/?\*|--|;)")
_MODIFIERS = (
    "export|default|public|private|protected|internal|static|final|abstract|sealed|open|async|pub|"
    r"data|inline|case|partial|readonly|override|unsafe|implicit|local|pub\(\w+\)"
)
_DEFINES = re.compile(
    rf"\s*(?:(?:{_MODIFIERS})\s+)*"
    r"(class|struct|interface|trait|enum|module|protocol|object|type|def|defp|defmodule|func|fn|"
    r"function)\s+(?:\([^)]*\)\s*)?(?:\w+\.)*([A-Za-z_]\w{3,})"
    r"\s*(?:[<({\[:=]|extends\b|implements\b|do\b|struct\b|interface\b|func\b|where\b|$)"
)
_TYPES = frozenset(
    _listed("class struct interface trait enum module protocol object type defmodule")
)
_USED = re.compile(r"(?<=\w[.])[A-Za-z_]\w{6,}|\b[A-Za-z_]\w+")
_WRITES = re.compile(
    r"(raise|throw|panic|warn|error|fatal|fail|exception|assert|log)\w*\b.*?"
    r"""(?P<quote>["'`])(?P<text>(?:(?!(?P=quote))[^\\]|\\.){15,200})(?P=quote)""",
    re.IGNORECASE,
)
_JOINED = re.compile(r"""["'] *\+ *[\w.()]{1,40} *\+ *["']""")
_GAP = re.compile(
    r"%[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]|%\(\w+\)[sdr]|[$#]\{[^{}]*\}|\\\([^()]*\)|\{[^{}]*\}|\$\w+|<>"
)
_VALUES = (
    "orders",
    "42",
    "/srv/shop/cart.txt",
    "Invoice",
    "3.5",
    "blue_lantern",
    "None",
    "tuesday",
)
_SETTINGS = frozenset(_listed("toml yml yaml ini cfg properties json conf sbt gradle kts"))
# Keys that look like names: max_size, maxSize, max-size, MAX_SIZE.
_KEY = re.compile(
    r"""\s*(?:-\s+)?["']?([A-Za-z]\w*(?:[a-z][A-Z]|[_-][A-Za-z])[\w-]*)["']?\s*:?[:=](?![=:])"""
)
_SETS = re.compile(r"""(?<![\w-])([A-Za-z][\w-]+)["']?\]?\s*(?::\s*\w+\s*)?[:?|]?[:=](?![=:>])""")
_FROM_ENVIRONMENT = re.compile(
    r"(?:[eE]nviron(?:ment)?|[gG]et_?env|process\.env|ENV|env::var(?:_os)?|LookupEnv|get_env|env)"
    r"""(?:\.get|\.fetch)?[(\[."']{1,3}([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"""
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ABSENT = _listed(
    "Stripe Kafka Terraform Salesforce Twilio Snowflake Grafana Okta Shopify Mailchimp Jenkins "
    "Ansible Cassandra Zigbee Chromecast Ethereum Fortran Polars Caddy Slate Vagrant Bigtable "
    "Pulsar Heroku Paypal Sentinel Airtable Figma Docusign Zendesk Tailwind Marionette"
)
_ASKED = (
    "Where is the {} client configured?",
    "How are {} events retried?",
    "{} integration",
    "Which class signs requests to {}?",
    "how does the {} adapter parse its options",
    "What happens when {} is not available?",
)


def with_questions(repository: Repository, checkouts: Path) -> Repository:
    """The repository with questions made from its checkout."""
    files = read(folder_of(repository, checkouts))
    makers: Mapping[str, Callable[[Lines], Iterator[Question]]] = {
        "messages": _messages,
        "identifiers": _identifiers,
        "definitions": _definitions,
        "configuration": _configuration,
        "negative": _negative,
    }
    questions = [
        replace(question, category=kind)
        for kind, make in makers.items()
        for question in islice(make(files), _number(kind))
    ]
    return replace(repository, questions=tuple(questions))


def _number(kind: str) -> int:
    return PER_CONFIGURATION if kind == "configuration" else PER_KIND


def read(folder: Path) -> Lines:
    """Path → lines of the files that are UTF-8 and not huge."""
    files: dict[str, Sequence[str]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_BYTES:
            try:
                files[str(file.relative_to(folder))] = file.read_text("utf-8").split("\n")
            except UnicodeDecodeError:
                continue
    return files


def words_in(files: Lines) -> frozenset[str]:
    """The words of all files in lower case: whole runs, and parts of identifiers."""
    runs = {run for lines in files.values() for line in lines for run in re.findall(r"\w+", line)}
    parts = {part for run in runs for part in _PARTS.findall(run)}
    return frozenset(word.lower() for word in runs | parts)


def _code(files: Lines) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of each line of code, without lines of comment."""
    for path, lines in files.items():
        if path.rpartition(".")[2] in CODE:
            for number, line in enumerate(lines, 1):
                if not _COMMENT.match(line):
                    yield path, number, line


def _is_aside(path: str) -> bool:
    return bool(_ASIDE.search(path)) or "Test" in path


def _shuffled(texts: Iterator[str]) -> list[str]:
    return sorted(dict.fromkeys(texts), key=lambda text: sha256(text.encode()).digest())


def _targets(places: Sequence[tuple[str, int]]) -> tuple[Target, ...]:
    return tuple(Target(path, line, line) for path, line in places)


def _messages(files: Lines) -> Iterator[Question]:
    found: dict[str, str] = {}  # the longest fixed part of each text
    for path, _, line in _code(files):
        if not _is_aside(path) and (match := _WRITES.search(_JOINED.sub("<>", line))):
            text = match["text"].replace("\\n", " ").replace('\\"', '"').replace("\\'", "'").strip()
            fixed = max(_GAP.split(text), key=len).strip()
            if len(fixed) >= 12 and len(fixed.split()) >= 3 and "\\" not in text:
                found[text] = fixed
    with_gaps = [text for text in _shuffled(iter(found)) if _GAP.search(text)]
    for text in with_gaps + [text for text in _shuffled(iter(found)) if not _GAP.search(text)]:
        places = [(path, n) for path, n, line in _code(files) if found[text] in line]
        if 0 < len(places) <= MAX_ANSWERS:
            values = iter(_VALUES * 8)
            yield Question(_GAP.sub(lambda _: next(values), text), "", _targets(places))  # noqa: B023


def _identifiers(files: Lines) -> Iterator[Question]:
    places: dict[str, dict[tuple[str, int], None]] = {}
    declared: set[str] = set()
    for path, number, line in _code(files):
        for match in _USED.finditer(line):
            name, before = match[0], line[: match.start()]
            if before.endswith(".") and not re.match(
                r"\s*[:=]|\s*\([^()]*\)\s*\{", line[match.end() :]
            ):
                places.setdefault(name, {})[path, number] = None
            else:
                declared.add(name)
    names = [name for name in places if re.search(r"[a-z][A-Z]|[a-z]_[a-z]", name)]
    for at, name in enumerate(_shuffled(name for name in names if name not in declared)):
        of_name = list(places[name])
        if len(of_name) <= MAX_ANSWERS and not all(_is_aside(path) for path, _ in of_name):
            yield Question(name if at % 2 else f"where is {name} used", "", _targets(of_name))


def _definitions(files: Lines) -> Iterator[Question]:
    places: dict[str, list[tuple[str, int]]] = {}
    keywords: dict[str, str] = {}
    for path, number, line in _code(files):
        match = _DEFINES.match(line)
        # A module of Haskell has a path as its name.
        if match and not re.search(r"^[^{]*;\s*$|^module \w+\.", line):
            places.setdefault(match[2], []).append((path, number))
            if not _is_aside(path):
                keywords[match[2]] = match[1]
    for at, name in enumerate(_shuffled(iter(keywords))):
        if len(places[name]) <= MAX_ANSWERS:
            verb = "is {} responsible for" if keywords[name] in _TYPES else "does {} do"
            forms = (
                f"What {verb.format(name)}?",
                f"{keywords[name]} {name}",
                f"where is {name} defined",
            )
            yield Question(forms[at % len(forms)], "", _targets(places[name]))


def _configuration(files: Lines) -> Iterator[Question]:
    names: dict[str, None] = {}
    for path, lines in files.items():
        has_keys = path.rpartition(".")[2] in _SETTINGS and "lock" not in path
        for line in () if _is_aside(path) else lines:
            names |= dict.fromkeys(_FROM_ENVIRONMENT.findall(line))
            if has_keys and (match := _KEY.match(line)):
                names[match[1]] = None
    forms = ("Where is {} configured?", "How do I set {}?", "where is `{}` set")
    places = _settings(files, names)
    for at, name in enumerate(_shuffled(iter(names))):
        if 0 < len(places[name]) <= MAX_ANSWERS:
            form = forms[at % len(forms)] if "-" not in name else forms[-1]
            yield Question(form.format(name), "", _targets(places[name]))


def _settings(files: Lines, names: Mapping[str, None]) -> Mapping[str, list[tuple[str, int]]]:
    """The lines that give each name a value, or read it from the environment."""
    places: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for path, lines in files.items():
        for number, line in enumerate(lines, 1):
            found = dict.fromkeys([*_SETS.findall(line), *_FROM_ENVIRONMENT.findall(line)])
            for name in found.keys() & places.keys():
                places[name].append((path, number))
    return places


def _negative(files: Lines) -> Iterator[Question]:
    known = words_in(files)
    absent = [word for word in _shuffled(iter(_ABSENT)) if word.lower() not in known]
    for at, word in enumerate(absent):
        yield Question(_ASKED[at % len(_ASKED)].format(word), "", ())
