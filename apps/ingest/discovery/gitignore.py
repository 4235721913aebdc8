"""Applies files of patterns as git does (https://git-scm.com/docs/gitignore), in bounded time.

They are `.gitignore`, `.git/info/exclude`, the user's own ignore file and `.codeinfoignore`. The
files are untrusted, so patterns are matched by RE2, whose time is linear in the length of a name.
"""

import codecs
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

import re2
from dulwich.ignore import read_ignore_patterns
from dulwich.wildmatch import MalformedPattern, translate

from apps.index.root_directory import RootDirectory, is_unreadable

NAME = ".gitignore"

# A hundred times what people write. Patterns beyond a limit are ignored, and reported.
MAX_BYTES = 100_000
MAX_LINES = 5_000
MAX_LINE_LENGTH = 500
MAX_WILDCARDS = 40
# In all files that apply to a folder together. Matching a name takes up to 2 µs for each wildcard.
MAX_WILDCARDS_IN_ALL = 4_000

TOO_LONG = "Patterns left out: over 100 kB"
TOO_MANY_LINES = "Patterns left out: over 5,000 lines"
TOO_COMPLEX = "Patterns left out: over 40 wildcards or 500 characters in a line"
TOO_MANY_WILDCARDS = "Patterns left out: over 4,000 wildcards"

WILDCARD = re.compile(rb"\*+|\?|\[")
SPECIAL = re.compile(rb"[*?[\\]")
LITERAL_ENDS = re.compile(rb"[*?\[\]\\]")
# dulwich's translation of a bracket that matches nothing, such as [z-a].
NEVER = b"(?!)"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of a pattern file."""

    text: bytes  # the pattern without `!` and leading or trailing slash
    ignores: bool  # false for a line that starts with `!`
    folders_only: bool
    anchored: bool  # matched against the path relative to the file's folder, else against the name

    @classmethod
    def of(cls, line: bytes) -> "_Rule":
        text = line.removeprefix(b"!")
        bare = text.removesuffix(b"/")
        return cls(bare.removeprefix(b"/"), text == line, bare != text, b"/" in bare)

    @property
    def wildcards(self) -> int:
        """Number of wildcards in the pattern."""
        return len(WILDCARD.findall(self.text))


class _Expressions:
    """Patterns with wildcards, each with the number of its line, matched in one pass."""

    def __init__(self, rules: Iterable[tuple[int, _Rule]]) -> None:
        self._lines: list[int] = []
        expressions: list[bytes] = []
        size = 0
        for line, rule in rules:
            try:
                expression = translate(rule.text)
            except MalformedPattern:
                continue  # as in git, it matches nothing
            if NEVER not in expression:
                expressions.append(expression)
                self._lines.append(line)
                size += 128 * len(rule.text) + 2_048 * rule.wildcards
        self._set = _compiled(expressions, size)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def matching(self, text: bytes) -> Sequence[int]:
        """Return the lines whose pattern matches."""
        matches = self._set.Match(text)
        if matches is None:  # the last expression matches everything
            raise MemoryError("The patterns of an ignore file need too much memory")
        if len(matches) == 1:
            return ()
        return [self._lines[number] for number in matches if number < len(self._lines)]


def _compiled(expressions: list[bytes], size: int) -> "re2.Set":
    """Compile the expressions to one set. RE2 reports no match if a set runs out of memory. To
    detect that, the last expression matches everything."""
    options = re2.Options()
    options.max_mem = 300_000 + size
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False
    compiled = re2.Set.FullMatchSet(options)
    for expression in [*expressions, b".*"]:
        compiled.Add(expression)
    compiled.Compile()
    return compiled


class _Hints(NamedTuple):
    """Literals of which a name has at least one if any rule of a file matches its path. Most names
    have none, and this takes a tenth of the time of the rules."""

    names: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    parts: tuple[str, ...]

    def may_match(self, name: str) -> bool:
        return (
            name in self.names
            or name.startswith(self.starts)
            or name.endswith(self.ends)
            or any(map(name.__contains__, self.parts))
        )

    @classmethod
    def of(cls, rules: Iterable[_Rule]) -> "_Hints":
        names, starts, ends, parts = set[str](), set[str](), set[str](), set[str]()
        for rule in rules:
            name = rule.text.rpartition(b"/")[2]
            start, end = LITERAL_ENDS.split(name)[0], LITERAL_ENDS.split(name)[-1]
            # Only at the end of a pattern with a slash it is certain that a literal is in the name.
            is_name = name == rule.text
            before = name.replace(b"\\", b"[").partition(b"[")[0] if is_name else b""
            part = max(re.split(rb"[*?]", before), key=len)
            if not SPECIAL.search(rule.text):
                names.add(os.fsdecode(name))
            elif not name.isascii():
                ends.add("")  # as any name has: a literal may be half a character
            elif start and is_name:
                starts.add(start.decode())
            elif end or not part:
                ends.add(end.decode())
            else:
                parts.add(part.decode())
        return cls(frozenset(names), tuple(starts), tuple(ends), tuple(parts))


class Patterns:
    """The pattern files that apply to a folder: its own, and those `above` it.

    Paths are relative to the folder of the uppermost file, such as the top of the work tree.

    path: that of its own file
    problem: why some patterns of its own file are ignored; "" if none is
    """

    def __init__(
        self, folder: str, content: bytes, above: "Patterns | None" = None, name: str = NAME
    ) -> None:
        self._above = above
        self._cut = len(folder)
        self.path = f"{folder}{name}"
        self.problem = ""
        self._rules = self._read(content, above.wildcards if above else 0)
        self._hints = _Hints.of(self._rules)
        # Lines without wildcards, by the name or the path that they match.
        self._by_name: defaultdict[bytes, list[int]] = defaultdict(list)
        self._by_path: defaultdict[bytes, list[int]] = defaultdict(list)
        wild = [(n, rule) for n, rule in enumerate(self._rules) if SPECIAL.search(rule.text)]
        for number, rule in enumerate(self._rules):
            if not SPECIAL.search(rule.text):
                (self._by_path if rule.anchored else self._by_name)[rule.text].append(number)
        self._names = _Expressions((n, rule) for n, rule in wild if not rule.anchored)
        self._paths = _Expressions((n, rule) for n, rule in wild if rule.anchored)

    def _read(self, content: bytes, wildcards: int) -> list[_Rule]:
        """Parse the rules within the limits. `wildcards`: their number in the files above."""
        if len(content) > MAX_BYTES:
            self.problem = TOO_LONG
            content = content[: content.rfind(b"\n", 0, MAX_BYTES) + 1]
        rules: list[_Rule] = []
        for line in read_ignore_patterns(BytesIO(content.removeprefix(codecs.BOM_UTF8))):
            rule = _Rule.of(line)
            if len(rules) == MAX_LINES:
                self.problem = TOO_MANY_LINES
                break
            if len(line) > MAX_LINE_LENGTH or rule.wildcards > MAX_WILDCARDS:
                self.problem = TOO_COMPLEX
            elif wildcards + rule.wildcards > MAX_WILDCARDS_IN_ALL:
                self.problem = TOO_MANY_WILDCARDS
            elif rule.text and b"\0" not in rule.text:
                rules.append(rule)
                wildcards += rule.wildcards
        self.wildcards = wildcards
        return rules

    def matches(self, path: str, *, is_folder: bool) -> bool | None:
        """Return True if the pattern that decides matches a path, False if it starts with `!`, and
        None if no pattern matches.

        The nearest file with a matching line decides, and in it the last matching line.
        """
        name = path.rpartition("/")[2]
        patterns: Patterns | None = self
        while patterns is not None:
            if patterns._hints.may_match(name):
                verdict = patterns._verdict(os.fsencode(path[patterns._cut :]), is_folder)
                if verdict is not None:
                    return verdict
            patterns = patterns._above
        return None

    def _verdict(self, path: bytes, is_folder: bool) -> bool | None:
        name = path.rpartition(b"/")[2]
        matching = [*self._by_name.get(name, ()), *self._by_path.get(path, ())]
        # A folder may have 100,000 entries, and a pass takes longer than all else.
        if self._names:
            matching += self._names.matching(name)
        if self._paths:
            matching += self._paths.matching(path)
        if not matching:
            return None
        applicable = [n for n in matching if is_folder or not self._rules[n].folders_only]
        return self._rules[max(applicable)].ignores if applicable else None


def read_patterns(directory: RootDirectory, path: str) -> bytes | None:
    """Return the content of a pattern file, up to the limit; None if there is no such file. A link
    or a folder of that name is none. Raises OSError if it cannot be read."""
    try:
        return directory.read(path, MAX_BYTES + 1)
    except OSError as error:
        if is_unreadable(error):
            raise
        return None
