"""Every regular expression of the product, and what the npm package recheck says of each.

`python -m tests.house.patterns` prints the list, and stores the verdicts in verdicts.json. To reach
them takes minutes, and they do not change: only what is not stored is judged in a test.

Expressions are found in the syntax trees of the product's files, evaluated where they are put
together from constants, and written again in JavaScript's syntax, which is what recheck reads.
"""

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from re import _constants as sre
from re import _parser as sre_parser
from typing import Any

from tests.house.sources import HOME, name_of, product

NODE = HOME / "tests" / "mcp" / "node_modules" / ".bin" / "node"
PACKAGE = HOME / "tests" / "mcp" / "package.json"
STORED = Path(__file__).with_name("verdicts.json")
FUNCTIONS = {
    "compile",
    "match",
    "search",
    "fullmatch",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}
# A busy machine may take many times the half minute of an idle one.
SECONDS = 3_600


class NotConstant(Exception):
    """An expression whose text is known only when it runs."""


class NotWritable(Exception):
    """An expression that JavaScript has no words for."""


@dataclass(frozen=True)
class Pattern:
    """One regular expression of the product.

    where: file:line.
    text: its source in Python's syntax; None where it is known only when it runs.
    engine: "re" or "re2", which is linear whatever it is given.
    uses: the functions that it is called with, such as {"search"}.
    """

    where: str
    text: str | bytes | None
    flags: int = 0
    engine: str = "re"
    uses: frozenset[str] = frozenset()
    shown: str = ""

    @property
    def file(self) -> str:
        return self.where.partition(":")[0]

    @property
    def is_anchored(self) -> bool:
        """Whether it is only ever tried at the beginning of a text."""
        return bool(self.uses) and self.uses <= {"match", "fullmatch"}


def patterns(sources: dict[str, str] | None = None) -> list[Pattern]:
    """Those of the product, or of `sources`: file name → text."""
    if sources is None:
        sources = {name_of(file): file.read_text() for file in product()}
    modules = {name: Module(name, ast.parse(text), {}) for name, text in sources.items()}
    for module in modules.values():
        module.others.update(modules)
    uses = _uses(modules.values())
    return [found for module in modules.values() for found in module.patterns(uses)]


@dataclass
class Module:
    """One file: its constants, and the regular expressions in it."""

    name: str
    tree: ast.Module
    others: dict[str, "Module"]
    _values: dict[str, Any] = field(default_factory=dict)

    def patterns(self, uses: dict[str, set[str]]) -> Iterator[Pattern]:
        named = {
            id(node.value): _targets(node)[0] for node in self._assignments() if _targets(node)
        }
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            engine, function = _called(node)
            if engine not in ("re", "re2") or function not in FUNCTIONS:
                continue
            known = (
                {function} if function != "compile" else uses.get(named.get(id(node), ""), set())
            )
            yield self._pattern(node, engine, frozenset(known))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _called(node)[1] in ("re_path", "RegexValidator"):
                yield self._pattern(node, "re", frozenset({"search"}))
            if isinstance(node, ast.Assign) and _targets(node) == ["regex"]:
                text = ast.literal_eval(node.value)
                yield Pattern(f"{self.name}:{node.lineno}", text, uses=frozenset({"fullmatch"}))

    def _pattern(self, node: ast.Call, engine: str, uses: frozenset[str]) -> Pattern:
        where, shown = f"{self.name}:{node.lineno}", ast.unparse(node.args[0])
        if re.fullmatch(r"[A-Za-z_]\w*", shown) and self._is_compiled(shown):
            # re.match(COMPILED, …): judged where it is compiled.
            return Pattern(where, "", engine="re2", uses=uses, shown=shown)
        try:
            text = self.value(node.args[0])
        except NotConstant:
            return Pattern(where, None, engine=engine, uses=uses, shown=shown)
        return Pattern(where, text, self._flags(node), engine, uses, shown)

    def _is_compiled(self, name: str) -> bool:
        return any(
            name in _targets(node)
            and isinstance(node.value, ast.Call)
            and _called(node.value)[1] == "compile"
            for node in self._assignments()
        )

    def _flags(self, call: ast.Call) -> int:
        arguments = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "flags")]
        flags = 0
        for node in arguments:
            for name in re.findall(r"\bre\.([A-Z]+)\b", ast.unparse(node)):
                flags |= getattr(re, name)
        return flags

    def value(self, node: ast.expr) -> Any:
        """The text of an expression that is made of constants. Raises NotConstant."""
        match node:
            case ast.Constant(value=str() | bytes() | int()):
                return node.value
            case ast.JoinedStr():
                return "".join(self._part(part) for part in node.values)
            case ast.BinOp(op=ast.Add()):
                return self.value(node.left) + self.value(node.right)
            case ast.Name(id=name):
                return self.constant(name)
            case ast.Attribute(value=ast.Name(id=name), attr="pattern"):
                return self.constant(name)
            case ast.Call(args=[first, *_]) if _called(node)[1] == "compile":
                return self.value(first)
        raise NotConstant(ast.unparse(node))

    def _part(self, part: ast.expr) -> str:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        return str(self.value(inner))

    def constant(self, name: str) -> Any:
        for node in self._assignments():
            if name in _targets(node):
                return self.value(node.value)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
                path = str(node.module).replace(".", "/")
                for file in (f"{path}.py", f"{path}/__init__.py"):
                    if file in self.others:
                        return self.others[file].constant(name)
        raise NotConstant(name)

    def _assignments(self) -> Iterator[Any]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                yield node


def _targets(node: Any) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _called(node: ast.Call) -> tuple[str, str]:
    """What a call names: ("re", "compile") of `re.compile(…)`, ("", "re_path") of `re_path(…)`."""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id, function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def _uses(modules: Any) -> dict[str, set[str]]:
    """Functions that compiled patterns are called with, by the names they are called by."""
    uses: dict[str, set[str]] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                uses.setdefault(name, set()).add(node.attr)
    return uses


# JavaScript's syntax


def javascript(pattern: Pattern) -> "Key":
    """Source and flags of a pattern for recheck. Raises NotWritable."""
    assert pattern.text is not None
    text = pattern.text.decode("latin-1") if isinstance(pattern.text, bytes) else pattern.text
    tree = sre_parser.parse(text, pattern.flags)
    flags = tree.state.flags
    source = _sequence(tree, flags)
    if pattern.is_anchored:
        source = f"^(?:{source})" + ("$" if pattern.uses == {"fullmatch"} else "")
    flag_letters = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    return source, "u" + "".join(w for f, w in flag_letters.items() if flags & f)


def _sequence(items: Any, flags: int) -> str:
    return "".join(_item(kind, value, flags) for kind, value in items)


def _item(kind: Any, value: Any, flags: int) -> str:
    simple = {
        sre.LITERAL: lambda: _letter(value),
        sre.NOT_LITERAL: lambda: f"[^{_letter(value)}]",
        sre.ANY: lambda: ".",
        sre.IN: lambda: _set(value),
        sre.CATEGORY: lambda: CATEGORIES[value],
        sre.AT: lambda: PLACES[value],
        sre.BRANCH: lambda: "(?:" + "|".join(_sequence(one, flags) for one in value[1]) + ")",
        sre.SUBPATTERN: lambda: f"({'' if value[0] else '?:'}{_sequence(value[3], flags)})",
        sre.ATOMIC_GROUP: lambda: f"(?:{_sequence(value, flags)})",
        sre.ASSERT: lambda: f"(?{'=' if value[0] > 0 else '<='}{_sequence(value[1], flags)})",
        sre.ASSERT_NOT: lambda: f"(?{'!' if value[0] > 0 else '<!'}{_sequence(value[1], flags)})",
        sre.GROUPREF: lambda: f"\\{value}",
        sre.MAX_REPEAT: lambda: _repeat(value, "", flags),
        sre.MIN_REPEAT: lambda: _repeat(value, "?", flags),
        sre.POSSESSIVE_REPEAT: lambda: _repeat(value, "", flags),
    }
    if kind not in simple:
        raise NotWritable(str(kind))
    return simple[kind]()


CATEGORIES = {
    sre.CATEGORY_DIGIT: "\\d",
    sre.CATEGORY_NOT_DIGIT: "\\D",
    sre.CATEGORY_SPACE: "\\s",
    sre.CATEGORY_NOT_SPACE: "\\S",
    sre.CATEGORY_WORD: "\\w",
    sre.CATEGORY_NOT_WORD: "\\W",
}
PLACES = {
    sre.AT_BEGINNING: "^",
    sre.AT_BEGINNING_STRING: "^",
    sre.AT_END: "$",
    sre.AT_END_STRING: "$",
    sre.AT_BOUNDARY: "\\b",
    sre.AT_NON_BOUNDARY: "\\B",
}


def _letter(code: int) -> str:
    return f"\\u{{{code:x}}}"


def _set(items: Any) -> str:
    inside = []
    for kind, value in items:
        if kind is sre.NEGATE:
            inside.append("^")
        elif kind is sre.RANGE:
            inside.append(f"{_letter(value[0])}-{_letter(value[1])}")
        else:
            inside.append(CATEGORIES[value] if kind is sre.CATEGORY else _letter(value))
    return f"[{''.join(inside)}]"


def _repeat(value: Any, lazy: str, flags: int) -> str:
    low, high, items = value
    most = "" if high is sre.MAXREPEAT else high
    return f"(?:{_sequence(items, flags)}){{{low},{most}}}{lazy}"


# Verdicts


Key = tuple[str, str]  # source, flags
Verdict = dict[str, str]  # status, complexity, attack


@cache
def verdicts(written: tuple[Key, ...]) -> dict[Key, Verdict]:
    """What recheck says of each."""
    known = stored()
    if new := [key for key in written if key not in known]:
        known = known | dict(zip(new, recheck(new), strict=True))
    return {key: known[key] for key in written}


def stored() -> dict[Key, Verdict]:
    """The verdicts of the installed version of recheck that are stored."""
    content = json.loads(STORED.read_text())
    if content["recheck"] != json.loads(PACKAGE.read_text())["devDependencies"]["recheck"]:
        return {}
    return {(source, flags): verdict for source, flags, verdict in content["verdicts"]}


def store(judged: dict[Key, Verdict]) -> None:
    version = json.loads(PACKAGE.read_text())["devDependencies"]["recheck"]
    rows = [[*key, verdict] for key, verdict in sorted(judged.items())]
    STORED.write_text(json.dumps({"recheck": version, "verdicts": rows}, indent=1) + "\n")


def recheck(written: Sequence[Key]) -> list[Verdict]:
    jobs = json.dumps([{"source": source, "flags": flags} for source, flags in written])
    command = [str(NODE), str(Path(__file__).with_suffix(".mjs"))]
    done = subprocess.run(
        command,
        input=jobs,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={"RECHECK_BACKEND": "auto", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def keys_of(found: list[Pattern]) -> dict[int, Key]:
    """The patterns that recheck judges, by their `id`."""
    jobs = [each for each in found if each.engine == "re" and each.text is not None]
    return {id(each): javascript(each) for each in jobs}


def judged(found: list[Pattern]) -> Iterator[tuple[Pattern, str, str]]:
    """Each pattern with its verdict and the reason for it."""
    keys = keys_of(found)
    known = verdicts(tuple(dict.fromkeys(keys.values())))
    for each in found:
        if each.engine == "re2":
            yield each, "safe", "RE2"
        elif each.text is None:
            yield each, "unknown", "known only when it runs"
        else:
            verdict = known[keys[id(each)]]
            yield each, verdict["status"], f"{verdict['complexity']} {verdict['attack']}".strip()


def main() -> None:
    found = patterns()
    for pattern, status, why in judged(found):
        print(f"{status:11} {pattern.where:55} {pattern.shown[:70]!r}  {why[:90]}")
    store(verdicts(tuple(dict.fromkeys(keys_of(found).values()))))


if __name__ == "__main__":
    main()
