"""Which questions have a shape, and what they ask about."""

import pytest

from apps.lookup.shapes import SHAPES, Question, read_question
from tests.house.sources import HOME

TRACES = {
    "python": (
        "Traceback (most recent call last):\n"
        '  File "/srv/app/cli.py", line 5, in main\n    serve()\n'
        '  File "/srv/app/crane.py", line 18, in weigh\n    raise ValueError("x")\n'
        "ValueError: a load has no negative weight\n"
    ),
    "javascript": (
        "TypeError: Cannot read properties of undefined\n"
        "    at weigh (/srv/app/crane.js:18:9)\n    at async main (file:///srv/app/cli.mjs:5:3)\n"
        "    at node:internal/main/run_main_module:23:47\n"
    ),
    "java": (
        'Exception in thread "main" java.lang.IllegalStateException: too heavy\n'
        "\tat com.harbour.Crane.weigh(Crane.java:18)\n\tat com.harbour.Cli.main(Cli.java:5)\n"
    ),
    "go": (
        "panic: too heavy\n\ngoroutine 1 [running]:\nmain.weigh(...)\n\t/srv/app/crane.go:18\n"
        "main.main()\n\t/srv/app/cli.go:5 +0x1d\n"
    ),
    "rust": (
        "thread 'main' panicked at src/crane.rs:18:5:\ntoo heavy\nstack backtrace:\n"
        "   3: app::main\n             at ./src/cli.rs:5:3\n"
    ),
    "csharp": (
        "Unhandled exception. System.InvalidOperationException: too heavy\n"
        "   at Harbour.Crane.Weigh(Int32 tons) in /srv/app/Crane.cs:line 18\n"
        "   at Harbour.Program.Main(String[] args) in C:\\app\\Cli.cs:line 5\n"
    ),
}


@pytest.mark.parametrize(
    ("shape", "example"),
    [(shape.name, text) for shape in SHAPES if shape.forms for text in shape.examples],
)
def test_each_example_has_its_shape(shape: str, example: str) -> None:
    assert next(read_question(example)).shape == shape


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("What calls `Client.get`, and what for?", Question("callers", "Client.get")),
        ("who else calls the function run()", Question("callers", "run")),
        ("Where is run called?", Question("callers", "run", is_sure=False)),
        ("What happens in A.send, step by step?", Question("steps", "A.send")),
        ("class hierarchy of `Command`", Question("implementations", "Command")),
        ("How does A::b reach C.d?", Question("path", "A::b", "C.d")),
        ("How does actions.[ADD] reach Api.post?", Question("path", "actions.[ADD]", "Api.post")),
        ("what uses is_valid in flask", Question("uses", "is_valid", repository="flask")),
        ("Which view handles POST /a/b", Question("route", "/a/b", method="POST")),
        ("where does this start?", Question("entry points")),
        ("where's the main function?", Question("entry points")),
        ("What tech is this built with?", Question("overview")),
        ("which languages are used here?", Question("languages")),
        ("how is express organized?", Question("modules", repository="express")),
        ("how are the tests run?", Question("commands", "tests")),
        ("Explain src/a/b.py", Question("file", "src/a/b.py")),
    ],
)
def test_a_question_names_what_it_is_about(text: str, question: Question) -> None:
    assert next(read_question(text)) == question


def test_tests_are_asked_for_if_no_repository_has_that_name() -> None:
    callers, tests = read_question("What calls `run` in tests?")
    assert callers == Question("callers", "run", repository="tests")
    assert tests == Question("tests", "run")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "How is a failed upload retried?",
        "What calls the app?",
        "What calls it?",
        "What does it do?",
        "Explain it",
        "Where is ` ` used?",
        "Where is `+` defined?",
        "What calls `::`?",
        "What calls `f`?",
        "Where is the login of users handled when the session is over?",
        "Where is the connection pool configured for tests?",
        "How does the worker reach the database?",
        "What does the parser do?",
        "def reach(a, b): return a",
        "ValueError: a load has no negative weight",
        "at noon: the sun is high",
        "x" * 400,
    ],
)
def test_other_questions_have_no_shape(text: str) -> None:
    assert not list(read_question(text))


@pytest.mark.parametrize("language", TRACES)
def test_a_trace_has_its_frames_innermost_first_and_its_message(language: str) -> None:
    trace = next(read_question(TRACES[language])).trace
    assert trace is not None
    frames = [
        (frame.path.rpartition("/")[2].partition(".")[0].lower(), frame.line)
        for frame in trace.frames
    ]
    assert frames == [("crane", 18), ("cli", 5)]
    assert any(word in trace.message for word in ("heavy", "negative weight", "undefined"))


def test_the_documentation_has_the_table_of_shapes() -> None:
    rows = [f"| {shape.name} | {' · '.join(shape.examples)} | {shape.answer} |" for shape in SHAPES]
    assert "\n".join(rows) in (HOME / "docs/questions.md").read_text()
