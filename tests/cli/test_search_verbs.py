"""`codeinfo search`, `codeinfo context` and `codeinfo ask`."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.command import Command, command
from tests.cli.terminal import CTRL_C
from tests.stand_ins.openai_scripts import Script, Stall, call, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

pytestmark = pytest.mark.door

QUESTION = ("how", "long", "is", "the", "delay", "before", "an", "attempt")


def test_a_search_shows_places_and_lines(cli: Command) -> None:
    lines = cli.lines("search", *QUESTION)
    assert lines[0] == "src/retry.py:1-18"
    assert lines[6] == "   6  def backoff_delay(attempt: int, base: float = 0.5) -> float:"
    assert lines[13] == "   …  6 more lines"
    full = cli.lines("search", "--full", *QUESTION)
    assert "  18          return attempt < self.limit" in full
    assert cli.lines("search", "-l", "-n", "1", *QUESTION) == ["src/retry.py:1-18"]


def test_a_search_restricts_and_says_what_is_missing(cli: Command) -> None:
    assert cli.lines("search", "-l", "-g", "*.js", "load a ship") == ["src/store.js:1-7"]
    assert cli.lines("search", "-l", "-t", "javascript", "load a ship") == ["src/store.js:1-7"]
    found = cli.run("search", "-l", "-R", "harbour", "berth of a ship")
    assert found.stdout == "harbour/harbour.py:1-3\n"
    missing = cli.run("search", "-l", "quaternion", "ship").stderr
    assert "Not in these repositories: quaternion" in missing
    nothing = cli.run("search", "-t", "cobol", "ship", status=1)
    assert "No file of" in nothing.stderr and nothing.stdout == ""


def test_a_search_understands_the_language_of_the_page(cli: Command) -> None:
    assert cli.lines("search", "-l", '"def should_retry"') == ["src/retry.py:17"]
    assert cli.lines("search", "sym:backoff_delay OR sym:RetryPolicy") == [
        "src/retry.py:6  backoff_delay",
        "  6  def backoff_delay(attempt: int, base: float = 0.5) -> float:",
        "",
        "src/retry.py:11  RetryPolicy",
        "  11  class RetryPolicy:",
    ]
    assert cli.lines("search", "type:file lang:javascript") == ["src/store.js"]
    few = cli.run("search", "-n", "1", '"retry" case:no').stderr
    assert "lines. Show more with -n." in few
    hinted = cli.run("search", "delay", "lang:klingon").stderr
    assert "lang:klingon: this is not a language that codeinfo knows" in hinted
    refused = cli.run("search", "--", "-a", status=2)
    assert "nothing to search for" in refused.stderr
    answer = cli.json("search", "sym:backoff_delay")
    assert (answer["lines"], answer["files"], answer["exact"]) == (1, 1, True)


def test_lines_fit_the_width_of_a_terminal(cli: Command) -> None:
    with cli.terminal("search", *QUESTION, columns=40) as terminal:
        assert terminal.end() == 0
    lines = terminal.seen.splitlines()
    assert lines[0] == "\x1b[35msrc/retry.py\x1b[0m\x1b[36m:\x1b[0m\x1b[32m1-18\x1b[0m"
    assert any("def backoff_delay(" in line and line.endswith("…") for line in lines)
    plain = [line.replace("\x1b[32m", "").replace("\x1b[0m", "") for line in lines[1:]]
    assert all(len(line.replace("\x1b[2m", "")) <= 40 for line in plain)


def test_context_gathers_what_answers_a_question(cli: Command) -> None:
    lines = cli.lines("context", "how are retries limited")
    assert lines[0].startswith("src/retry.py:")
    assert any("def should_retry" in line for line in lines)
    answer = cli.json("context", "-n", "300", "how are retries limited")
    assert answer["tokens"] <= 300 and answer["results"][0]["kind"] == "passage"


def test_json_is_the_answer_of_the_tool(cli: Command) -> None:
    answer = cli.json("search", *QUESTION)
    assert answer["results"][0]["relPath"] == "src/retry.py"
    assert answer["modelId"] and answer["files"]


def test_without_a_model_ask_quotes_what_fits_and_cites_last(cli: Command) -> None:
    done = cli.run("ask", *QUESTION)
    assert "def backoff_delay" in done.stdout
    assert done.stdout.endswith("\nCitations\n   1  src/retry.py:1-18\n")
    assert "VectorSearch" in done.stderr and "Continue: codeinfo ask -c " in done.stderr
    assert "connect one (`codeinfo status`)" in done.stdout
    assert "](/" not in done.stdout


def test_the_events_of_an_answer_as_json(cli: Command) -> None:
    events = [json.loads(line) for line in cli.lines("ask", "--json", *QUESTION)]
    types = [event["type"] for event in events]
    assert types[0] == "tool-request" and types[-2:] == ["final", "complete"]


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn() as server:
        yield server


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, model: OpenAIStandIn) -> Iterator[Command]:
    """A repository, and a server with a language model."""
    home = tmp_path_factory.mktemp("home")
    with command(home, CODEINFO_OPENAI_BASE_URL=model.url) as made:
        made.run("ingest")
        made.run("ingest", str(made.home / "src" / "harbour"))
        yield made


def test_an_answer_streams_and_its_citations_come_last(
    asking: Command, model: OpenAIStandIn
) -> None:
    text = "It doubles (lighthouse/src/retry.py:6-8), see `src/retry.py:8`, not made/up.py:1."
    model.scripts["cites"] = Script(
        [[*call("VectorSearch", {"query": "delay"}), *end("tool_calls")], [*say(text), *end()]]
    )
    done = asking.run("ask", "-p", "openai", "-m", "cites", *QUESTION)
    assert done.stdout == (f"{text}\n\nCitations\n   1  src/retry.py:6-8\n   2  src/retry.py:8\n")
    # Several repositories are ingested: the answer is limited to that of the folder.
    assert "the repository 'lighthouse' only" in str(model.exchanges[-1].body["tools"])


def test_a_question_with_a_shape_is_answered_in_a_folder_of_several(asking: Command) -> None:
    answer = asking.run("ask", "-p", "builtin", "who calls backoff_delay?").stdout
    assert "definition of backoff_delay" in answer


def test_an_answer_appears_as_it_is_written_and_ctrl_c_stops_it(
    asking: Command, model: OpenAIStandIn
) -> None:
    model.scripts["slow"] = Script([[*say("The first words."), Stall()]])
    with asking.terminal("ask", "-p", "openai", "-m", "slow", *QUESTION) as terminal:
        terminal.until("The first words.")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
        assert "codeinfo: Stopped." in terminal.seen
    assert model.exchanges[-1].client_left.wait(30)


def test_an_answer_that_fails_says_why(asking: Command) -> None:
    failed = asking.run("ask", "-p", "openai", "-m", "status-401", *QUESTION, status=2)
    assert failed.stderr.splitlines()[-1].startswith("codeinfo: ")
    events = asking.run("ask", "-p", "openai", "-m", "status-401", "x", "--json", status=2)
    assert json.loads(events.stdout.splitlines()[-1])["type"] == "error"
    unknown = asking.run("ask", "-p", "nobody", "-m", "x", "ship", status=2).stderr
    assert "provider must be one of" in unknown


def test_a_conversation_continues(asking: Command, model: OpenAIStandIn) -> None:
    model.scripts["hello"] = Script([[*say("Hello."), *end()]])
    first = asking.run("ask", "-p", "openai", "-m", "hello", "--repo", "harbour", "first question")
    conversation = first.stderr.split("ask -c ")[1].split()[0]
    asking.run("ask", "-p", "openai", "-m", "hello", "-c", conversation, "second question")
    messages = model.exchanges[-1].body["messages"]
    texts = [each["content"] for each in messages if each["role"] == "user"]
    assert texts == ["first question", "second question"]
    assert "the repository 'harbour' only" in str(model.exchanges[-1].body["tools"])
    asking.run("ask", "-p", "openai", "-m", "hello", "-c", conversation, "-a", "third question")
    assert " only" not in model.exchanges[-1].body["tools"][0]["function"]["description"]


def test_the_first_provider_that_can_answer_is_the_default(asking: Command) -> None:
    events = [json.loads(line) for line in asking.lines("ask", "--json", "hello there, ship")]
    assert events[-1]["type"] == "complete"
    chosen = asking.run("ask", "-a", "hello", CODEINFO_CHAT_PROVIDER="builtin")
    assert chosen.stdout.startswith("Ask a question about the ingested code")
