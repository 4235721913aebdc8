"""`codeinfo grep` as users of grep and ripgrep know it."""

import json
import os
import subprocess

import pytest

from tests.cli.command import CODEINFO, Command
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

DEFINITION = "src/retry.py:6:def backoff_delay(attempt: int, base: float = 0.5) -> float:"


def test_lines_are_path_line_text(cli: Command) -> None:
    assert cli.lines("grep", "backoff_delay") == [DEFINITION]
    assert cli.lines("grep", "-rnHE", "backoff_\\w+") == [DEFINITION]


def test_paths_are_relative_in_the_current_folder_and_name_the_repository_elsewhere(
    cli: Command,
) -> None:
    inside = cli.lines("grep", "backoff_delay", cwd=cli.lighthouse / "src")
    assert inside == [DEFINITION.removeprefix("src/")]
    store = cli.home / "src/lighthouse/src"
    assert cli.lines("grep", "-l", "ships", "..", cwd=store) == ["../README.md", "store.js"]
    assert cli.lines("grep", "-l", "ships", "../README.md", cwd=store) == ["../README.md"]
    assert cli.lines("read", "../README.md:1", cwd=store) == ["1  # Lighthouse"]
    assert "../main.txt" in cli.lines("ls", "..", cwd=store)
    above = cli.lines("grep", "backoff_delay", cwd=cli.home)
    assert above == [f"src/lighthouse/{DEFINITION}"]
    beside = cli.lines("grep", "-a", "backoff_delay", cwd=cli.home / "src" / "harbour")
    assert beside == [f"lighthouse/{DEFINITION}"]


def test_a_verb_in_a_repository_is_about_that_one(cli: Command) -> None:
    ship = ("grep", "-l", "ship")
    assert cli.lines(*ship) == ["README.md", "src/store.js"]
    assert cli.lines(*ship, cwd=cli.home / "src" / "harbour") == ["harbour.py"]
    files = ["src/harbour/harbour.py", "src/lighthouse/README.md", "src/lighthouse/src/store.js"]
    assert sorted(cli.lines(*ship, cwd=cli.home)) == files
    assert cli.lines(*ship, "-R", "harbour") == ["harbour/harbour.py"]
    assert cli.lines(*ship, "-R", "../harbour") == ["harbour/harbour.py"]
    assert len(cli.lines(*ship, "--all")) == 3


def test_options_of_grep(cli: Command) -> None:
    assert cli.lines("grep", "-i", "BACKOFF_delay") == [DEFINITION]
    cli.run("grep", "-w", "backoff", status=1)
    assert cli.lines("grep", "-F", "def __init__(") != []
    assert cli.lines("grep", "-c", "self") == ["src/retry.py:4"]
    assert cli.lines("grep", "-m", "1", "self", "-l") == ["src/retry.py"]
    assert len(cli.lines("grep", "-m", "2", "self")) == 2
    assert len(cli.lines("grep", "-m", "1", "ship", "--all")) == 3  # of each file
    assert len(cli.lines("grep", "--limit", "2", "ship", "--all")) == 2
    assert cli.lines("grep", "-c", "-m", "3", "self") == ["src/retry.py:3"]
    assert cli.lines("grep", "-e", "backoff_delay") == [DEFINITION]
    assert cli.lines("grep", "-PIs", "--no-heading", "--include", "*.py", "def backoff_\\w+") == [
        DEFINITION
    ]
    assert cli.lines("grep", "--files-with-matches", "--repository", "harbour", "ship") != []
    assert cli.lines("grep", "-q", "self") == []
    assert cli.run("grep", "-q", "no such words", status=1).stderr == ""
    either = cli.lines("grep", "-F", "-e", "import time", "-e", "__init__(self", "src")
    assert [line.split(":")[1] for line in either] == ["3", "14"]
    assert "grep -v" in cli.run("grep", "-v", "self", status=2).stderr
    assert "PATTERN is missing" in cli.run("grep", status=2).stderr
    cli.run("grep", "--", "-limit", status=1)
    assert cli.lines("grep", "-l", "--", "self", "src") == ["src/retry.py"]
    assert cli.lines("grep", "-C", "1", "class RetryPolicy") == [
        "src/retry.py-10-",
        "src/retry.py:11:class RetryPolicy:",
        'src/retry.py-12-    """How often a call is repeated."""',
    ]
    apart = cli.lines("grep", "-C", "1", "self.limit = limit|import time")
    assert apart == [
        "src/retry.py-2-",
        "src/retry.py:3:import time",
        "src/retry.py-4-",
        "--",
        "src/retry.py-14-    def __init__(self, limit: int) -> None:",
        "src/retry.py:15:        self.limit = limit",
        "src/retry.py-16-",
    ]


def test_lines_before_and_after(cli: Command) -> None:
    def numbers(*options: str) -> list[str]:
        lines = cli.lines("grep", *options, "self.limit = limit|import time|return att", "src")
        return [line if line == "--" else line[12:15].rstrip(" -:") for line in lines]

    assert numbers("-A", "1") == [":3", "-4", "--", ":15", "-16", "--", ":18"]
    assert numbers("-B", "1") == ["-2", ":3", "--", "-14", ":15", "--", "-17", ":18"]
    # The lines between two matches are before the second.
    assert numbers("-B", "2") == ["-1", "-2", ":3", "--", "-13", "-14", ":15", "-16", "-17", ":18"]
    assert numbers("-A", "1", "-B", "2") == numbers("-B", "2", "-A", "1")
    assert numbers("-C", "1", "-A", "0") == numbers("-B", "1")


def test_paths_and_globs_restrict(cli: Command) -> None:
    assert cli.lines("grep", "-l", "ship", "src") == ["src/store.js"]
    assert cli.lines("grep", "-l", "ship", "README.md", "src/store.js") == [
        "README.md",
        "src/store.js",
    ]
    assert cli.lines("grep", "-l", "ship", "-g", "*.md") == ["README.md"]
    assert cli.lines("grep", "-l", "ship", "-g", "store.js") == ["src/store.js"]
    assert cli.lines("grep", "-l", "-g", "*.js", "-g", "*.md", "ship") == [
        "README.md",
        "src/store.js",
    ]
    assert cli.lines("grep", "-l", "-g", "*.js", "ship", "src") == ["src/store.js"]
    cli.run("grep", "ship", "-t", "python", status=1)
    assert cli.lines("grep", "-l", "ship", "harbour/harbour.py") == ["harbour/harbour.py"]
    assert "not supported" in cli.run("grep", "ship", "-g", "!*.md", status=2).stderr
    assert "is in no ingested folder" in cli.run("grep", "x", "/etc/passwd", status=2).stderr


def test_the_exit_status_is_that_of_grep(cli: Command) -> None:
    assert cli.run("grep", "nothing like this", status=1).stdout == ""
    wrong = cli.run("grep", "(", status=2)
    assert wrong.stderr.startswith("codeinfo: ") and "-F looks for the text" in wrong.stderr
    missing = cli.run("grep", "ship", "-R", "nowhere", status=2)
    assert "No repository 'nowhere' is ingested." in missing.stderr
    assert "Repositories: 'harbour', 'lighthouse'." in missing.stderr
    assert "codeinfo repos lists the repositories." in missing.stderr


def test_json_is_the_answer_of_the_tool_unchanged(cli: Command) -> None:
    answer = cli.json("grep", "backoff_delay")
    assert answer["mode"] == "content"
    (row,) = answer["results"]
    assert (row["repo"], row["relPath"], row["startLine"]) == ("lighthouse", "src/retry.py", 6)
    assert row["hostPath"] == str(cli.lighthouse / "src/retry.py")
    assert cli.json("grep", "nothing like this", status=1)["results"] == []
    wrong = cli.run("grep", "(", "--json", status=2)
    assert json.loads(wrong.stdout)["error"] == "BAD_PATTERN"
    assert wrong.stderr == ""


def test_all_pages_are_shown(cli: Command) -> None:
    folder = write_files(cli.home / "src" / "many", {"many.txt": "a ship\n" * 1_201})
    cli.run("ingest", str(folder))
    assert len(cli.lines("grep", "ship", cwd=folder)) == 1_201
    assert len(cli.lines("grep", "ship", "-m", "700", cwd=folder)) == 700
    cli.run("remove", "many", "--yes")


def test_colours_are_for_terminals_only(cli: Command) -> None:
    coloured = (
        "\x1b[35msrc/retry.py\x1b[0m\x1b[36m:\x1b[0m\x1b[32m6\x1b[0m\x1b[36m:\x1b[0m"
        "def \x1b[1;31mbackoff_delay\x1b[0m(attempt: int, base: float = 0.5) -> float:"
    )
    with cli.terminal("grep", "backoff_delay", columns=30) as terminal:
        assert terminal.end() == 0
        assert terminal.seen.splitlines() == [coloured]
    with cli.terminal("grep", "backoff_delay", NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert terminal.seen.splitlines() == [DEFINITION]
    with cli.terminal("grep", "backoff_delay", TERM="dumb") as terminal:
        terminal.end()
        assert terminal.seen.splitlines() == [DEFINITION]
    assert cli.lines("grep", "backoff_delay", "--color", "always") == [coloured]
    marked = cli.lines("grep", "-iw", "RETRYPOLICY", "--color=always")
    assert "class \x1b[1;31mRetryPolicy\x1b[0m:" in marked[0]


def test_a_reader_that_has_enough_is_no_error(cli: Command) -> None:
    folder = write_files(cli.home / "src" / "long", {"long.txt": "a ship at sea\n" * 5_000})
    cli.run("ingest", str(folder))
    script = f"{CODEINFO} grep ship | head -1; echo ${{PIPESTATUS[@]}}"
    done = cli.of(["bash", "-c", script], folder)
    assert (done.stdout, done.stderr) == ("long.txt:1:a ship at sea\n0 0\n", "")
    cli.run("remove", "long", "--yes")


def test_hostile_names_and_texts_cannot_reach_the_terminal(cli: Command) -> None:
    name = "evil\x1b]0;title\x07\n\u202e.py"
    folder = write_files(
        cli.home / "src" / "hostile", {name: "needle \x1b[2J\u202e\r \x07 end\tafter\n"}
    )
    cli.run("ingest", str(folder))
    with cli.terminal("grep", "needle", "-R", "hostile") as terminal:
        assert terminal.end() == 0
    shown = terminal.seen.replace("\r\n", "\n")
    for sequence in ("\x1b]0", "\x1b[2J", "\x07", "\u202e", "\r"):
        assert sequence not in shown, sequence
    text = "needle \\u001b[2J\\u202e\\u000d \\u0007 end\tafter"
    (line,) = cli.lines("grep", "needle", cwd=folder)
    assert line == f"evil\\u001b]0;title\\u0007\\u000a\\u202e.py:1:{text}"
    for verb in (("search", "needle"), ("ls", "-l"), ("context", "needle"), ("status", "hostile")):
        shown = cli.run(*verb, cwd=folder).stdout
        assert not set("\x1b\x07\u202e\r") & set(shown), verb
    assert cli.json("grep", "needle", cwd=folder)["results"][0]["relPath"] == name
    cli.run("remove", "hostile", "--yes")


def test_terminals_that_are_not_utf_8(cli: Command) -> None:
    folder = write_files(cli.home / "src" / "words", {"words.txt": "a naïve café — ☕\n"})
    cli.run("ingest", str(folder))
    environ = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    line = "words.txt:1:a na\\xefve caf\\xe9 \\u2014 \\u2615"
    assert cli.lines("grep", "caf", cwd=folder, **environ) == [line]
    latin = cli.environment | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [CODEINFO, "grep", "caf"], cwd=folder, env=latin, capture_output=True, check=True
    )
    assert done.stdout == "words.txt:1:a naïve café \\u2014 \\u2615\n".encode("latin-1")
    not_utf8 = os.fsdecode(b"caf\xe9")
    assert "is not UTF-8" in cli.run("grep", not_utf8, cwd=folder, status=2).stderr
    cli.run("remove", "words", "--yes")
