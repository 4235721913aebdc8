"""The Context tool: what answers a question, packed into a number of tokens."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from apps.tools import shaped
from apps.tools.context import ContextQuery, build, build_context, find
from apps.tools.context.tokens import estimate
from apps.tools.context.tool import CONTEXT
from apps.tools.vector_search import VECTOR_SEARCH
from tests.support.ingested import ingest, write_files
from tests.tools.context.conftest import FILES, Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]

QUESTION = "How is a failed upload retried?"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer depends on how busy the machine is."""
    monkeypatch.setattr(build, "USES_SECONDS", 60.0)
    monkeypatch.setattr(shaped, "SECONDS", 60.0)


def test_an_answer_has_passages_definitions_callers_and_tests(depot: Path, post: Post) -> None:
    status, answer = post("context", question=QUESTION, path="depot/upload.py")
    assert status == 200
    rows = answer["results"]
    assert rows[0]["relPath"] == "depot/upload.py"
    assert "def send_with_retry" in rows[0]["chunk"]
    kinds = {row["kind"]: row for row in reversed(rows)}
    callers = [row for row in rows if row["kind"] == "caller"]
    assert ("depot/jobs.py", "nightly", 6) in [
        (row["relPath"], row["symbol"], row["startLine"]) for row in callers
    ]
    assert kinds["test"]["relPath"] == "tests/test_upload.py"
    assert kinds["test"]["of"] == "send_with_retry"
    _, answer = post("context", question=QUESTION)
    defined = [
        (row["of"], row["relPath"]) for row in answer["results"] if row["kind"] == "definition"
    ]
    assert defined == [("Store", "depot/store.py")]


def test_callers_of_another_definition_with_the_same_name_are_left_out(
    folder: Path, post: Post
) -> None:
    mail = {
        "mail/post.py": (
            "class Letterbox:\n"
            "    def push_twice(self, letter):\n"
            '        """Deliver a letter again after a failed delivery."""\n'
            "        return self.box.put(letter)\n"
        ),
        "mail/bell.py": "class Bell:\n    def push_twice(self, seconds):\n        return seconds\n",
        "mail/round.py": (
            "from mail.post import Letterbox\n\n\n"
            "def walk(letters):\n"
            "    box = Letterbox()\n"
            "    for letter in letters:\n"
            "        box.push_twice(letter)\n"
        ),
        "mail/door.py": (
            "from mail.bell import Bell\n\n\n"
            "def ring():\n"
            "    bell = Bell()\n"
            "    bell.push_twice(3)\n"
        ),
    }
    root = ingest(write_files(folder / "mail-round", mail))
    only = {"repository": root.name, "path": "mail/post.py"}
    _, answer = post("context", question="How is a letter delivered again?", **only)
    kinds = [(row["kind"], row["relPath"]) for row in answer["results"]]
    assert kinds == [("passage", "mail/post.py"), ("caller", "mail/round.py")]


def test_where_calls_cannot_be_told_lines_of_code_with_the_name_stand_for_them(
    folder: Path, post: Post
) -> None:
    bakery = {
        "lib/oven.rb": "def bake_loaf(flour)\n  heat(flour)\nend\n",
        "lib/shop.rb": "# bake_loaf is called daily\nrequire 'oven'\n\nloaf = bake_loaf(rye)\n",
        "spec/oven_spec.rb": "it 'rises' do\n  expect(bake_loaf(rye)).to be_brown\nend\n",
    }
    root = ingest(write_files(folder / "bakery", bakery))
    only = {"repository": root.name, "path": "lib/oven.rb"}
    _, answer = post("context", question="How does bake_loaf heat the flour?", **only)
    assert [(row["kind"], row["relPath"], row["startLine"]) for row in answer["results"]] == [
        ("passage", "lib/oven.rb", 1),
        ("caller", "lib/shop.rb", 4),
        ("test", "spec/oven_spec.rb", 2),
    ]


@pytest.mark.parametrize("tokens", [200, 300, 500, 1_000, 4_000])
def test_an_answer_keeps_to_its_tokens(depot: Path, tokens: int) -> None:
    form = CONTEXT.run({"question": QUESTION, "max_tokens": tokens}, is_compact=True)
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    assert estimate(text) <= tokens
    assert form["results"][0]["relPath"] == "depot/upload.py"


def test_an_answer_of_tabs_and_quotes_keeps_to_its_tokens(folder: Path) -> None:
    lines = [f'\t\tif moon == "m{n}" {{\n\t\t\treturn "low {n}"\n\t\t}}' for n in range(60)]
    code = "\n".join(["func TideOf(moon string) int {", *lines, "\treturn 0", "}", ""])
    root = ingest(write_files(folder / "tides", {"tide.go": code}))
    asked = {"question": "Which tide does TideOf return?", "repository": root.name}
    for tokens in (300, 500, 700, 900):
        form = CONTEXT.run(asked | {"max_tokens": tokens}, is_compact=True)
        assert form["results"]
        assert estimate(json.dumps(form, ensure_ascii=False, separators=(",", ":"))) <= tokens


def test_the_best_passage_is_whole_as_soon_as_the_answer_has_room_for_it(depot: Path) -> None:
    form = CONTEXT.run({"question": QUESTION}, is_compact=True)
    alone = {"results": form["results"][:1]}
    needed = estimate(json.dumps(alone, ensure_ascii=False, separators=(",", ":")))
    tokens = round(needed / (1 - build.MARGIN)) + 20  # the parts are estimated one by one
    short = CONTEXT.run({"question": QUESTION, "max_tokens": tokens}, is_compact=True)
    assert short["results"][:1] == alone["results"]


@pytest.mark.parametrize("seed", range(20))
def test_a_text_has_as_many_tokens_whichever_way_they_are_counted(seed: int) -> None:
    """Texts of ASCII are counted by bits, others by a pattern."""
    random = Random(seed)
    words = ["HTTPServer", "aBc", "x", "_", "self.part", "12345", "====", "  ", "\t", "\n", "a" * 9]
    text = "".join(random.choice([*words, " ", "X" * 8, "\r\n", "\x1c"]) for _ in range(300))
    assert estimate(f"{text}\né") == estimate(text) + len(["\n", "é"])


def test_tokens_of_a_long_line_of_signs_take_linear_time(folder: Path, post: Post) -> None:
    signs = "=" * 900_000
    write_files(
        folder,
        {
            "bar.py": f'def heavy_bar(): return "{signs}"\n',
            "page.py": "def show_page():\n    '''Show the ruled page.'''\n    return heavy_bar()\n",
        },
    )
    ingest(folder)
    _, answer = post("context", question="Where is the ruled page shown?", path="page.py")
    assert answer["results"][0]["relPath"] == "page.py"
    _, answer = post("context", question="Where is the ruled page shown?")
    assert answer["results"][0]["relPath"] == "page.py"
    assert estimate(signs) == 300_000


@pytest.mark.parametrize("tokens", [300, 1_000, 20_000])
def test_no_line_is_told_twice_and_every_line_is_the_file_s(depot: Path, tokens: int) -> None:
    query = ContextQuery(QUESTION, max_tokens=tokens)
    answer = build_context(query, find(query))
    told: Counter[tuple[str, int]] = Counter()
    for piece in answer.pieces:
        lines = str(FILES[piece.place.path]).split("\n")
        for number, text in enumerate(piece.text.split("\n"), piece.start_line):
            told[piece.place.path, number] += 1
            assert text.strip() == lines[number - 1].strip()
    assert told
    assert set(told.values()) == {1}


def test_lines_of_the_answer_by_shape_are_not_repeated(depot: Path, post: Post) -> None:
    _, answer = post("context", question="What calls `send_with_retry`?")
    shown = lines_of_rows(answer["answer"]["rows"])
    assert {"depot/jobs.py:6", "tests/test_upload.py:5"} <= shown
    for row in answer["results"]:
        assert not lines_of_rows([row]) <= shown, row


@pytest.mark.parametrize("tokens", [440, 600])
def test_the_answer_by_shape_leaves_the_best_passage_whole(
    depot: Path, post: Post, tokens: int
) -> None:
    question = "Where is `send_with_retry` used?"
    _, plain = post("vector-search", query=question)
    best = lines_of_rows(plain["results"][:1])
    _, answer = post("context", question=question, max_tokens=tokens)
    assert answer["answer"]["rows"]
    assert lines_of_rows(answer["results"]) >= best
    assert answer["tokens"] <= tokens


def test_the_passage_that_shows_the_line_of_an_answer_comes_first(folder: Path) -> None:
    keys = "".join(f"  {word}_color: {n}\n" for n, word in enumerate(("red", "sea", "sky") * 9))
    guide = "# Retries\n\nWhere the retry limit is set: set `retry_limit`.\n" + "Set it.\n" * 30
    files = {"ci/pipeline.yml": f"jobs:\n{keys}  retry_limit: 5\n", "docs/retry_limit.md": guide}
    name = ingest(write_files(folder / "tides", files)).name
    question = "where is `retry_limit` set"
    found = VECTOR_SEARCH.run({"query": question, "repository": name})["results"]
    assert found[0]["relPath"] == "docs/retry_limit.md"
    answer = CONTEXT.run({"question": question, "repository": name, "max_tokens": 500})
    assert answer["answer"]["rows"][0]["relPath"] == "ci/pipeline.yml"
    assert answer["results"][0]["relPath"] == "ci/pipeline.yml"
    assert "cut" not in answer["results"][0]


def test_passages_of_a_stack_trace_are_those_of_its_message(depot: Path, post: Post) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/srv/other/main.py", line 3, in main\n    work()\n'
        "ValueError: twice as long after each failed attempt\n"
    )
    _, answer = post("context", question=trace)
    assert answer["results"][0]["relPath"] == "depot/backoff.py"


def lines_of_rows(rows: list[dict[str, Any]]) -> set[str]:
    return {
        f"{row['relPath']}:{line}"
        for row in rows
        for line in range(row["startLine"], row["endLine"] + 1)
    }


def test_rows_of_the_answer_by_shape_tell_that_their_files_have_changed(
    folder: Path, post: Post
) -> None:
    files = {f"{name}.py": f"def hoist():\n    return {name!r}\n" for name in "abc"}
    sea = write_files(folder / "sea", files)
    ingest(sea)
    write_files(sea, {path: f"{text}\n\n" for path, text in files.items()})
    query = {"query": "Where is `hoist` defined?", "repository": "sea", "limit": 1}
    _, answer = post("vector-search", **query)
    assert len(answer["answer"]["rows"]) == 3
    assert answer["changedFiles"] == ["sea/a.py", "sea/b.py", "sea/c.py"]


def test_passages_are_whole_and_a_cut_one_is_marked(depot: Path, post: Post) -> None:
    _, answer = post("context", question=QUESTION, max_tokens=500)
    first, second, *_ = answer["results"]
    assert [first["chunk"], second["chunk"]] == [
        str(FILES[row["relPath"]]).rstrip("\n") for row in (first, second)
    ]
    assert not any("cut" in row for row in (first, second))
    _, short = post("context", question=QUESTION, max_tokens=200)
    (row, *_) = short["results"]
    assert row["cut"] is True
    assert "failed upload is retried" in row["chunk"]
    compact = CONTEXT.run({"question": QUESTION, "max_tokens": 200}, is_compact=True)
    assert compact["results"][0]["cut"] is True


def test_more_tokens_tell_more_files_and_fewer_are_left_out(depot: Path) -> None:
    queries = [ContextQuery(QUESTION, max_tokens=tokens) for tokens in (300, 4_000)]
    few, many = (build_context(query, find(query)) for query in queries)
    files = [{piece.place.path for piece in answer.pieces} for answer in (few, many)]
    assert len(files[0]) < len(files[1])
    assert len(many.left_out) <= len(few.left_out)


def test_what_has_no_room_is_named(depot: Path, post: Post) -> None:
    _, answer = post("context", question=QUESTION, max_tokens=400)
    assert answer["leftOut"]
    for name in answer["leftOut"]:
        path, _, lines = name.removeprefix("depot/").rpartition(":")
        assert path in FILES
        assert lines.split("-")[0].isdigit()


def test_nothing_near_is_weak(depot: Path, post: Post) -> None:
    _, answer = post("context", question="quantum chromodynamics lattice gauge")
    assert answer["missingWords"]
    assert all(row.get("weak") for row in answer["results"])
    assert {row["kind"] for row in answer["results"]} <= {"passage"}


def test_filters_and_repositories_narrow(depot: Path, post: Post) -> None:
    _, answer = post("context", question=QUESTION, path="tests/")
    assert {row["relPath"] for row in answer["results"] if row["kind"] == "passage"} == {
        "tests/test_upload.py"
    }
    status, error = post("context", question=QUESTION, repository="nowhere")
    assert (status, error["error"]) == (404, "REPO_NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "question is required"),
        ({"question": " "}, "question is required"),
        ({"question": "x" * 10_001}, "question must have at most 10,000 characters"),
        ({"question": "x", "max_tokens": "many"}, "max_tokens must be an integer"),
        ({"question": "x", "path": "../x"}, "path must not hold .."),
    ],
)
def test_a_wrong_argument_is_named(depot: Path, post: Post, body: dict, problem: str) -> None:  # type: ignore[type-arg]
    status, error = post("context", **body)
    assert (status, error["details"]) == (400, [problem])


def test_the_compact_form_has_the_same_places(depot: Path) -> None:
    arguments = {"question": QUESTION, "path": "depot/upload.py"}
    full = CONTEXT.run(arguments)["results"]
    compact = CONTEXT.run(arguments, is_compact=True)
    assert set(compact) >= {"results", "callers", "tests"}
    lines = [text for name in ("callers", "tests", "mentions") for text in compact.get(name, ())]
    assert len(compact["results"]) + len(lines) == len(full)
    shown = [(row["relPath"], row["chunk"], row.get("symbol")) for row in compact["results"]]
    for row in full:
        if row["kind"] in ("passage", "definition"):
            assert (row["relPath"], row["chunk"].split("\n"), row.get("symbol")) in shown
        else:
            start = f"{row['repo']}/{row['relPath']}:{row['startLine']} {row.get('symbol', '')}"
            assert any(text.startswith(start) and text.endswith(row["chunk"]) for text in lines)
