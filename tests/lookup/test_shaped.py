"""Questions that have a shape, asked at POST /tools/vector-search."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agents.tools import toolset
from apps.index.types import Area
from apps.tools.vector_search import VECTOR_SEARCH
from tests.lookup.harbours import FILES
from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture(scope="module", autouse=True)
def harbour(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("shapes")))
    with ingested_once(django_db_blocker, base, {"harbour": FILES}):
        yield


def lines(answer: dict[str, Any], kind: str) -> list[str]:
    """`crane.py:8 Crane.lift` of the rows of a kind; `?` behind those that are possible."""
    return [
        f"{row['relPath'].rpartition('/')[2]}:{row['startLine']} {row.get('symbol', '')}".strip()
        + ("" if row["certainty"] == "proven" else " ?")
        for row in answer["rows"]
        if row["kind"] == kind
    ]


def test_callers_come_after_the_definition_and_before_tests(post: Post) -> None:
    answer = ask(post, "What calls `weigh`, and what for?")
    assert (answer["shape"], answer["subject"]) == ("callers", "weigh")
    assert [row["kind"] for row in answer["rows"]] == ["definition", "caller", "test", "test"]
    assert lines(answer, "definition") == ["crane.py:20 weigh"]
    assert lines(answer, "caller") == ["crane.py:13 Crane.lift"]
    assert lines(answer, "test") == ["test_crane.py:5 test_weigh", "test_crane.py:6 test_weigh"]


def test_in_a_language_without_rules_lines_with_the_name_answer_and_the_answer_says_so(
    post: Post,
) -> None:
    answer = ask(post, "Who calls `Buoy.ring`?")
    assert lines(answer, "reference") == ["buoy.rb:11 storm ?"]
    assert "Calls of ruby are not resolved: these lines have the name." in answer["notes"]


def test_what_nothing_calls_is_said(post: Post) -> None:
    answer = ask(post, "What calls `launch_rocket`?")
    assert answer["rows"] == []
    assert answer["notes"] == ["Nothing was found: no line that calls launch_rocket."]


def test_a_plain_word_that_nothing_defines_is_no_name(post: Post) -> None:
    assert "answer" not in post("vector-search", query="What calls heaven?")[1]
    assert "answer" not in post("vector-search", query="Where is navigation configured?")[1]


def test_uses_are_told_from_tests(post: Post) -> None:
    answer = ask(post, "Where is MAX_BERTHS used?")
    assert lines(answer, "definition") == ["settings.py:1 MAX_BERTHS"]
    assert lines(answer, "reference")[-1] == "crane.py:13 Crane.lift ?"


def test_tests_are_one_line_of_each_test(post: Post) -> None:
    answer = ask(post, "Where is `Crane.lift` tested?")
    assert lines(answer, "test") == ["test_crane.py:10 test_a_crane_lifts"]
    assert lines(ask(post, "tests for weigh()"), "test") == ["test_crane.py:5 test_weigh"]


def test_configuration_lists_the_lines_that_give_a_value(post: Post) -> None:
    answer = ask(post, "Where is MAX_BERTHS configured?")
    assert lines(answer, "setting") == ["pyproject.toml:8 ?"]  # the other line is the definition
    assert lines(answer, "definition") == ["settings.py:1 MAX_BERTHS"]


def test_what_has_no_value_in_the_files_is_told_by_the_lines_with_its_name(post: Post) -> None:
    answer = ask(post, "where's MOORING_LIMIT set?")
    assert lines(answer, "reference") == ["anchor.sh:1 ?"]
    assert answer["notes"] == ["Nothing was found: no line that gives MOORING_LIMIT a value."]


def test_what_the_environment_sets_is_told_by_the_line_that_reads_it(post: Post) -> None:
    assert lines(ask(post, "Where is MOORING_DEPTH configured?"), "setting") == ["depth.py:5 ?"]


def test_implementations_of_a_class_are_found_through_others(post: Post) -> None:
    answer = ask(post, "subclasses of Machine")
    assert lines(answer, "implementation") == ["crane.py:11 Crane", "crane.py:16 Tall"]
    answer = ask(post, "What overrides Machine.lift?")
    assert lines(answer, "implementation") == ["crane.py:12 Crane.lift"]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Moorer", "quay.go:7 Ship ?"),
        ("Light", "lamp.rs:7 Lamp"),
        ("ITow", "Tug.cs:5 Harbour.Tug ?"),
        ("Buoy", "buoy.rb:7 Bell ?"),
    ],
)
def test_implementations_are_found_in_other_languages(post: Post, name: str, row: str) -> None:
    assert lines(ask(post, f"What implements `{name}`?"), "implementation") == [row]


def test_the_type_may_be_one_of_a_library(post: Post) -> None:
    answer = ask(post, "subclasses of BaseModel")
    assert lines(answer, "implementation") == ["cargo.py:4 Cargo ?", "cargo.py:8 Grain ?"]
    answer = ask(post, "What extends ApiController?")
    assert lines(answer, "implementation") == ["Yacht.cs:1 Yacht ?"]
    answer = ask(post, "What extends `Heaven`?")
    assert answer["notes"] == [
        "Nothing was found: nothing that extends, implements or overrides Heaven."
    ]


def test_a_bare_name_is_a_type_that_is_in_no_other(post: Post) -> None:
    (row,) = [r for r in ask(post, "subclasses of Keel")["rows"] if r["kind"] == "implementation"]
    assert (row["symbol"], row["of"]) == ("Steel", "Keel")


def test_a_path_is_the_calls_in_their_order(post: Post) -> None:
    answer = ask(post, "How does `main` reach `weigh`?", language="python")
    steps = [(row["symbol"], row["of"]) for row in answer["rows"] if row["kind"] == "step"]
    assert steps == [("main", "serve"), ("serve", "Crane.lift"), ("Crane.lift", "weigh")]
    answer = ask(post, "How does `weigh` reach `serve`?")
    assert answer["notes"] == ["Nothing was found: no way of calls from weigh to serve."]


def test_steps_are_the_calls_in_a_definition(post: Post) -> None:
    answer = ask(post, "What does `serve` do, step by step?")
    steps = [(row["startLine"], row["of"]) for row in answer["rows"] if row["kind"] == "step"]
    assert steps == [(10, "Crane"), (10, "Crane.lift")]
    answer = ask(post, "What does `Buoy.ring` call?")
    assert "Calls of ruby are not resolved." in answer["notes"]


def test_a_file_is_told_by_what_it_defines_and_who_imports_it(post: Post) -> None:
    answer = ask(post, "What does crane.py do?")
    assert lines(answer, "definition") == [
        "crane.py:4 Machine",
        "crane.py:11 Crane",
        "crane.py:16 Tall",
        "crane.py:20 weigh",
    ]
    assert lines(answer, "importer") == ["cli.py:1", "test_crane.py:1"]
    assert ask(post, "What does nowhere.py do?")["notes"]


def test_the_outline_of_a_file_is_inside_its_namespace(post: Post) -> None:
    answer = ask(post, "What is in hull.h?")
    assert lines(answer, "definition") == ["hull.h:6 harbour.Hull"]
    answer = ask(post, "What does hull.cc do?")
    names = ["hull.cc:5 harbour.Hull.Depth", "hull.cc:9 harbour.Draught"]
    assert lines(answer, "definition") == names


def test_importers_of_a_file_are_all_that_is_told_of_it(post: Post) -> None:
    answer = ask(post, "what imports src/harbour/views.py")
    assert answer["shape"] == "importers"
    assert lines(answer, "importer") == ["api.py:2", "api_urls.py:3", "urls.py:3"]
    assert len(answer["rows"]) == 3
    assert ask(post, "What uses views.py?")["rows"] == answer["rows"]
    assert ask(post, "What uses array.ts?")["shape"] == "uses"


def test_this_file_is_the_one_that_a_chat_is_limited_to() -> None:
    (search,) = toolset((), ("VectorSearch",), (Area("harbour", "src/harbour/crane.py"),))
    answer = search.run({"query": "What does this file do?"})["answer"]
    assert lines(answer, "definition")[0] == "crane.py:4 Machine"
    assert "answer" not in VECTOR_SEARCH.run({"query": "What does this file do?"})


def test_entry_points_are_those_of_manifests_and_main_functions(post: Post) -> None:
    answer = ask(post, "Where is the entry point?")
    found = {(row["relPath"], row["startLine"], row["of"]) for row in answer["rows"]}
    assert found == {
        ("pyproject.toml", 5, "command harbour"),
        ("src/harbour/cli.py", 4, "command harbour"),
        ("package.json", 3, "npm run start"),
        ("web/server.js", 1, "npm run start"),
        ("Dockerfile", 2, "container"),
        ("quay.go", 11, "main function"),
    }


@pytest.mark.parametrize(
    ("query", "route", "handler"),
    [
        ("Where is route /ships/7?", "/ships/<int:pk>/", "views.show_ship"),
        ("Which view serves /api/berths/?", "/api/berths/", "views.list_berths"),
        ("What handles GET /tides/monday?", "GET /tides/:day", "showTide"),
        ("where is GET /yards/3 handled", "GET /yards/:id", "showYard"),
        ("which function serves /buoys/3/light", "POST /buoys/{number}/light", "light_buoy"),
    ],
)
def test_a_route_leads_to_what_serves_it(post: Post, query: str, route: str, handler: str) -> None:
    answer = ask(post, query)
    first = answer["rows"][0]
    assert (first["of"], first["symbol"], first["certainty"]) == (route, handler, "proven")
    assert lines(answer, "definition")[0].endswith(handler.rpartition(".")[2])


def test_middleware_is_not_what_serves_a_route(post: Post) -> None:
    answer = ask(post, "Where is POST /yards?")
    assert lines(answer, "route") == ["yard.js:4"]
    assert lines(answer, "definition") == []


def test_routes_in_docstrings_and_tests_come_after_code(post: Post) -> None:
    answer = ask(post, "Where is route /port/anchors/7?")
    assert lines(answer, "route") == [
        "pier.py:6 show_anchor ?",  # its prefix is not known
        "anchors.py:6 example ?",
        "test_pier.py:4 test_anchor",
    ]


def test_a_path_of_a_file_is_no_route(post: Post) -> None:
    assert "answer" not in post("vector-search", query="Where is /src/harbour/crane.py?")[1]


def test_a_trace_leads_to_its_lines_though_they_have_moved(post: Post) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/srv/site-packages/harbour/cli.py", line 90, in serve\n    Crane().lift(3)\n'
        '  File "/srv/site-packages/harbour/crane.py", line 50, in weigh\n'
        '    raise ValueError("a load has no negative weight")\n'
        "ValueError: a load has no negative weight\n"
    )
    status, body = post("vector-search", query=trace)
    assert status == 200
    assert lines(body["answer"], "frame") == ["crane.py:23 weigh", "cli.py:10 serve"]
    assert "negative weight" in body["results"][0]["chunk"]


def test_the_filters_of_a_request_apply(post: Post) -> None:
    answer = ask(post, "What calls `weigh`?", path="tests/")
    assert {row["relPath"] for row in answer["rows"]} == {"tests/test_crane.py"}


def test_a_model_reads_no_line_twice_and_a_client_gets_all_passages(post: Post) -> None:
    query = {"query": "Where is MAX_BERTHS defined?", "path": "src/harbour/settings.py"}
    _, body = post("vector-search", **query)
    (row,), (passage,) = body["answer"]["rows"], body["results"]
    assert (row["relPath"], row["chunk"]) == (passage["relPath"], passage["chunk"])
    compact = VECTOR_SEARCH.run(query, is_compact=True)
    assert compact["results"] == [] and "hint" not in VECTOR_SEARCH.hinted(compact)


def test_context_has_the_rows_first_and_counts_their_tokens(post: Post) -> None:
    status, body = post("context", question="What calls `weigh`?", max_tokens=600)
    assert status == 200 and next(iter(body)) == "answer"
    assert lines(body["answer"], "caller") == ["crane.py:13 Crane.lift"]
    assert body["tokens"] <= 600


@pytest.mark.parametrize("query", ["What calls `weigh`?", "entry points", "Where is weigh tested?"])
def test_the_compact_form_says_each_row_in_one_text(query: str) -> None:
    full = VECTOR_SEARCH.run({"query": query})["answer"]["rows"]
    compact = VECTOR_SEARCH.run({"query": query}, is_compact=True)
    for row, text in zip(full, compact["answer"]["rows"], strict=True):
        lines = f"{row['repo']}/{row['relPath']}:{row['startLine']}-{row['endLine']}"
        parts = (row["kind"], lines, row.get("symbol", ""), row.get("of", ""), row["chunk"])
        assert all(part in text for part in parts)
        assert text.startswith("possible ") == (row["certainty"] == "possible")


def test_a_chat_quotes_the_rows_to_a_model() -> None:
    output = VECTOR_SEARCH.run({"query": "What calls `weigh`?"})
    quoted = VECTOR_SEARCH.quoted(output)
    assert next(iter(quoted)) == "answer"
    assert quoted["answer"]["rows"][1] == (
        "caller harbour/src/harbour/crane.py:13-13 Crane.lift -> weigh"
        " | return weigh(tons) + MAX_BERTHS"
    )
