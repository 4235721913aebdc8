"""The rules of each language, by grammar and by path."""

from collections.abc import Mapping
from functools import lru_cache

from apps.code.callgraph.c import CRules
from apps.code.callgraph.gdscript import GDScriptRules
from apps.code.callgraph.go import GoRules
from apps.code.callgraph.java import JavaRules
from apps.code.callgraph.javascript import JavaScriptRules
from apps.code.callgraph.python import PythonRules
from apps.code.callgraph.rules import Rules
from apps.code.callgraph.rust import RustRules
from apps.code.languages import FILE_TYPES, extension_of, known_type

ALL: tuple[Rules, ...] = (
    PythonRules(),
    JavaScriptRules(),
    GoRules(),
    JavaRules(),
    RustRules(),
    CRules(),
    GDScriptRules(),
)
BY_LANGUAGE: Mapping[str, Rules] = {name: rules for rules in ALL for name in rules.family}
GRAMMARS: Mapping[str, Rules] = {
    kind.grammar: BY_LANGUAGE[kind.name] for kind in FILE_TYPES if kind.name in BY_LANGUAGE
}
NO_RULES = Rules()


@lru_cache(maxsize=10_000)
def rules_for(path: str) -> Rules:
    """The rules for a file, by its name; rules that know nothing for other languages. Those of a
    notebook are Python's: calls in others are not known."""
    kind = known_type("_.py" if extension_of(path) == "ipynb" else path)
    return BY_LANGUAGE.get(kind.name, NO_RULES) if kind else NO_RULES
