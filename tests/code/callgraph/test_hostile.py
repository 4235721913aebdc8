"""Hostile and large files: the call graph is bounded, and does not raise."""

import json

import pytest

from apps.code.callgraph.callers import targets
from apps.code.callgraph.extract import call_facts, facts_of
from apps.code.callgraph.facts import MAX_CHAIN, MAX_FACTS, Facts
from apps.code.callgraph.languages import GRAMMARS
from apps.code.callgraph.resolve import Resolver
from benchmarks.callers_project import MemoryProject
from tests.code.callgraph.edges import edges
from tests.code.language_samples import SAMPLES, Sample

DEEP = 5_000


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("python", "f(" * DEEP + ")" * DEEP),
        ("python", "x" + ".a()" * DEEP),
        ("javascript", "f(() => " * DEEP),
        ("typescript", "let x: " + "A<" * DEEP),
        ("go", "package a\nfunc f() {" + "if x {" * DEEP),
        ("java", "class A { " * DEEP),
        ("rust", "fn f() { " + "{" * DEEP),
        ("c", "int x = " + "(" * DEEP),
        ("cpp", "a::" * DEEP + "b();"),
        ("python", "x: " + "list[" * DEEP + "A" + "]" * DEEP + " = " + "[" * DEEP + "]" * DEEP),
        (
            "typescript",
            "let x: " + "Array<" * DEEP + "A" + ">" * DEEP + " = " + "[" * DEEP + "]" * DEEP,
        ),
        ("java", "class A { " + "List<" * DEEP + "A" + ">" * DEEP + " x; }"),
        ("go", "package a\nvar x " + "[]map[string]" * DEEP + "A"),
        ("rust", "struct A { x: " + "Vec<" * DEEP + "A" + ">" * DEEP + " }"),
        ("cpp", "std::vector<" * DEEP + "A" + ">" * DEEP + " x;"),
        ("tsx", "<A>" * DEEP),
        ("vue", "<template>" + "<p>" * DEEP + "{{" * DEEP),
        ("svelte", "{#if a}" * 500 + "{b(" * 500),
        ("astro", "---\n" + "f(" * DEEP + "\n---\n" + "{<p>" * 500),
    ],
)
def test_deep_nesting_ends(grammar: str, text: str) -> None:
    facts = facts_of(text.split("\n"), grammar)
    assert all(len(each.chain) <= MAX_CHAIN for each in facts.calls)
    assert all(path.path.count(".") < 20 for path in facts.definitions)


def test_a_long_line_takes_linear_time_and_has_right_columns() -> None:
    line = "é();" * 4_000 + "ende()"
    facts = facts_of([line], "javascript")
    assert [facts.calls[at].column for at in (0, 1, -1)] == [0, 4, 16_000]
    facts = facts_of(["f(" + "x => x.y()," * 4_000 + ")"], "javascript")
    assert len(facts.calls) == 4_001


@pytest.mark.parametrize("grammar", ["vue", "svelte", "astro"])
def test_pages_without_scripts_and_with_many_have_facts(grammar: str) -> None:
    assert facts_of(["<", "{{", "<script>"], grammar).definitions[0].name == "default"
    calls = facts_of(["<script>a()</script>", "<My.Row/>"] * 300, grammar).calls
    assert len(calls) == 600


def test_of_a_long_chain_the_last_name_is_known() -> None:
    facts = facts_of(["x" + ".a()" * 50], "python")
    assert {each.chain for each in facts.calls if each.chain[0] == "?"} == {("?", "a")}
    assert max(len(each.chain) for each in facts.calls) == MAX_CHAIN


def test_facts_of_a_large_file_are_limited() -> None:
    facts = facts_of(["f()"] * (MAX_FACTS + 10), "python")
    assert len(facts.calls) == MAX_FACTS


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_facts_survive_the_way_between_processes(grammar: str) -> None:
    text = "class A { m() { return f(x => x.y) } }\ndef g(a: B): return a.b()\nfunc f() {}\n"
    lines = text.split("\n")
    answer = json.loads(json.dumps(call_facts(lines, 0, grammar)))
    assert Facts.from_json(answer) == facts_of(lines, grammar)


def test_code_that_does_not_parse_has_the_facts_that_it_has() -> None:
    broken = "class A(:\n    def f(self:\n        self.g(\nimport\nfrom x import\ndef h(): h()\n"
    assert "h -> h" in edges({"a.py": broken})
    for grammar in GRAMMARS:
        facts_of(broken.split("\n"), grammar)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_every_beginning_of_a_file_is_read(sample: Sample) -> None:
    text = sample.source
    # One grammar of each language's rules
    for grammar in {rules: grammar for grammar, rules in GRAMMARS.items()}.values():
        for cut in range(0, len(text), max(1, len(text) // 10)):
            facts_of(text[:cut].split("\n"), grammar)


def test_names_that_mean_each_other_end() -> None:
    names = "\n".join(f"a{n} = a{(n + 1) % 50}" for n in range(50))
    bases = "\n".join(f"class B{n}(B{(n + 1) % 50}): pass" for n in range(50))
    returns = "\n".join(f"def c{n}(): return c{(n + 1) % 50}()" for n in range(50))
    text = f"{names}\n{bases}\n{returns}\na1()\nB1().x()\nc1().y()\n"
    project = MemoryProject({"a.py": text})
    facts = project.facts("a.py")
    assert facts is not None
    resolver = Resolver(project)
    assert [targets(resolver, "a.py", each) for each in facts.calls[-6:]]


@pytest.mark.parametrize(
    "files",
    [
        {"src/lib.rs": "use prelude::*;\nfn main() { go(); }\n"},
        {
            "src/lib.rs": "mod a;\nmod b;\nuse a::*;\nfn main() { go(); }\n",
            "src/a.rs": "pub use crate::b::*;\npub use x::y::*;\n",
            "src/b.rs": "pub use crate::a::*;\npub use super::*;\nuse self::*;\n",
        },
        {"a.py": "from b import *\ngo()\n", "b.py": "from a import *\n"},
        {"a.ts": "export * from './b';\ngo();\n", "b.ts": "export * from './a';\n"},
        {"p/a.go": 'package p\nimport . "m/p"\nfunc f() { Go() }\n', "go.mod": "module m\n"},
        {
            "p/A.java": (
                "package p;\nimport static p.A.*;\nimport p.*;\nclass A { void f() { go(); } }\n"
            )
        },
        {"a.cpp": "using namespace a;\nnamespace a { using namespace a; }\nvoid f() { go(); }\n"},
    ],
    ids=lambda files: next(iter(files)).rpartition(".")[2],
)
def test_imports_of_all_names_may_be_circles(files: dict[str, str]) -> None:
    assert edges(files) == []
