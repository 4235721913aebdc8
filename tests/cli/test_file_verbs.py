"""`codeinfo read`, `codeinfo ls` and `codeinfo open`, and shell completion of paths."""

import json
import subprocess
from pathlib import Path

import pytest

from codeinfo_cli import server
from tests.cli.command import Command
from tests.support.ingested import SAMPLE, write_files

pytestmark = pytest.mark.door

BACKOFF = SAMPLE["src/retry.py"].split("\n")[5:8]


def test_lines_of_a_file(cli: Command) -> None:
    numbered = [f"{number:>2}  {line}" for number, line in enumerate(BACKOFF, 6)]
    for path in ("src/retry.py:6-8", "lighthouse/src/retry.py:6-8"):
        assert cli.lines("read", path) == numbered
    assert cli.lines("read", "retry.py:6-8", cwd=cli.lighthouse / "src") == numbered
    assert cli.lines("read", str(cli.lighthouse / "src/retry.py:6-8"), cwd=cli.home) == numbered
    assert cli.lines("read", "src/retry.py:6-8", "-R", "lighthouse", cwd=cli.home) == numbered
    assert cli.lines("read", "src/retry.py:6:def backoff_delay(") == numbered[:1]
    assert cli.lines("read", "-p", "src/retry.py", "-L", "6-8") == BACKOFF
    assert cli.lines("read", "src/retry.py", "-L", "1,6") == [
        ' 1  """Trying again after a failure."""',
        "--",
        numbered[0],
    ]
    assert cli.run("read", "-p", "src/retry.py").stdout == SAMPLE["src/retry.py"]
    assert cli.lines("read", "src/retry.py:17-")[0].startswith("17  ")


def test_a_file_of_any_size_is_shown_whole(cli: Command) -> None:
    text = "".join(f"line {number} {'x' * 90}\n" for number in range(1, 1_501))
    folder = write_files(cli.home / "src" / "large", {"large.txt": text})
    cli.run("ingest", str(folder))
    assert cli.run("read", "-p", "large.txt", cwd=folder).stdout == text
    some = cli.lines("read", "-p", "large.txt", "-L", "2, 10-1490", cwd=folder)
    lines = text.splitlines()
    assert some == [lines[1], *lines[9:1490]]
    # The tool's own answer for a large file is its first lines.
    assert cli.json("read", "large.txt", cwd=folder)["totalLines"] == 1_500
    (folder / "large.txt").write_text("another text\n")
    assert "has changed since" in cli.run("read", "large.txt:1", cwd=folder).stderr
    cli.run("remove", "large", "--yes")


def test_a_file_that_is_not_ingested(cli: Command) -> None:
    missing = cli.run("read", "src/nowhere.py", status=2)
    assert "nowhere.py" in missing.stderr
    assert "codeinfo ls shows the ingested files" in missing.stderr
    error = json.loads(cli.run("read", "src/nowhere.py", "--json", status=2).stdout)
    assert error["error"] == "FILE_NOT_FOUND"
    outside = cli.run("read", "/etc/passwd", status=2).stderr
    assert "begin with the id of one ('harbour', 'lighthouse')" in outside


def test_folders_and_globs(cli: Command) -> None:
    assert cli.lines("ls") == ["README.md", "main.txt", "src/"]
    assert cli.lines("ls", cwd=cli.lighthouse / "src") == ["retry.py", "store.js"]
    assert cli.lines("ls", "src") == ["src/retry.py", "src/store.js"]
    assert cli.lines("ls", "-d", "2") == ["README.md", "main.txt", "src/retry.py", "src/store.js"]
    assert cli.lines("ls", "README.md") == ["README.md"]
    assert cli.lines("ls", "-g", "*.js") == ["src/store.js"]
    assert cli.lines("ls", "-g", "retry.py") == ["src/retry.py"]
    assert cli.lines("ls", "-l", "src/retry.py") == ["src/retry.py  433 B, python"]
    assert cli.lines("ls", "-l")[2] == "src/  608 B, 2 files, python, javascript"
    assert cli.lines("ls", "--skipped") == ["package-lock.json  23 B, Generated"]
    assert "lighthouse/src/" in cli.lines("ls", "lighthouse", cwd=cli.home / "data")
    everything = ["harbour/harbour.py", "lighthouse/README.md", "lighthouse/main.txt"]
    shown = sorted(cli.lines("ls", "-a", cwd=cli.home / "src"))
    assert shown == [*everything, "lighthouse/src/"]
    assert "No file" in cli.run("ls", "-g", "*.cob", status=1).stderr
    assert [row["relPath"] for row in cli.json("ls", "src")["results"]] == [
        "src/retry.py",
        "src/store.js",
    ]


def test_the_address_of_a_file_is_a_page(cli: Command) -> None:
    address = server.running(cli.data)
    assert address is not None
    for path, query in (("src/retry.py:6-8", "?lines=6-8"), ("src/retry.py:6", "?lines=6")):
        (url,) = cli.lines("open", "--print", path)
        assert url == f"{address.url}/code/lighthouse/src/retry.py{query}"
    assert cli.json("open", "README.md") == {"url": f"{address.url}/code/lighthouse/README.md"}
    assert "is not ingested" in cli.run("open", "--print", "nowhere.py", status=2).stderr


def test_open_starts_the_browser(cli: Command) -> None:
    seen = cli.home / "seen"
    browser = cli.home / "bin" / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    done = cli.run("open", "src/retry.py:6", BROWSER=f"{browser} %s")
    assert done.stdout == ""
    assert seen.read_text().strip().endswith("/code/lighthouse/src/retry.py?lines=6")


def completed(cli: Command, *words: str, cwd: Path | None = None) -> list[str]:
    """What bash is offered for the last of some words."""
    environ = {
        "_CODEINFO_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["codeinfo", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = cli.of(["codeinfo"], cwd, **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_shells_complete_verbs_options_repositories_and_paths(cli: Command) -> None:
    assert completed(cli, "gre") == ["grep"]
    assert completed(cli, "grep", "--igno") == ["--ignore-case"]
    assert completed(cli, "grep", "-R", "light") == ["lighthouse"]
    assert completed(cli, "remove", "har") == ["harbour"]
    assert completed(cli, "read", "src/r") == ["src/retry.py"]
    assert completed(cli, "read", "lighthouse/src/s", cwd=cli.home) == ["lighthouse/src/store.js"]
    assert completed(cli, "read", "li", cwd=cli.home / "data") == ["lighthouse/"]


def test_completion_starts_no_server(cli: Command) -> None:
    nowhere = str(cli.home / "no-data")
    environ = {
        "_CODEINFO_COMPLETE": "bash_complete",
        "COMP_WORDS": "codeinfo remove ",
        "COMP_CWORD": "2",
        "CODEINFO_DATA_DIR": nowhere,
    }
    done = cli.of(["codeinfo"], **environ)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    assert not Path(nowhere).exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(cli: Command, shell: str) -> None:
    script = cli.run("completion", shell).stdout
    assert "_CODEINFO_COMPLETE" in script and "codeinfo" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
