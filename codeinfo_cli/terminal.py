"""Output of verbs: results on stdout, messages on stderr.

Names and texts of repositories are untrusted: an escape sequence in a file name could rewrite the
screen, or type commands. All that is written passes `visible`, except JSON.
"""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping
from typing import IO, Any

import click

from codeinfo_cli.errors import NOTHING, CliError

# Unicode categories of characters that are invisible or affect the characters around them.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Parameters of SGR (ECMA-48)
STYLES = {"path": "35", "line": "32", "mark": "36", "match": "1;31", "name": "1", "dim": "2"}
STYLES |= {"added": "32", "removed": "31"}
# The style of a line of a diff, by its first character
SIDES = {"+": "added", "-": "removed", "@": "mark"}
# What is written before a note of an answer
LABELS = {"degraded": "Incomplete: ", "stale": "Changed since: "}


def visible(text: str, *, lines: bool = False) -> str:
    """Replace invisible characters, except tabs, by escapes such as `\\u001b`.

    lines: keep line feeds, too
    """
    if text.isprintable():
        return text
    allowed = "\n\t" if lines else "\t"
    return "".join(
        letter
        if letter in allowed or unicodedata.category(letter) not in INVISIBLE_CATEGORIES
        else _escape(letter)
        for letter in text
    )


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


def prepare() -> None:
    """Let each character be written, on terminals that are not UTF-8 as an escape.

    A stream that is closed (`>&-`) becomes an empty one.
    """
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


_colour: str = "auto"


def choose_colour(when: str) -> None:
    """Set when `styled` has an effect: "auto" (on a terminal), "always" or "never"."""
    global _colour
    _colour = when


def has_colour() -> bool:
    """Whether stdout gets colours (https://no-color.org)."""
    if _colour != "auto":
        return _colour == "always"
    is_dumb = os.environ.get("TERM") == "dumb"
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and not is_dumb


def is_terminal(stream: IO[Any]) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def is_interactive() -> bool:
    """Whether a question can be asked: stdin and stderr are terminals."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def styled(text: str, style: str) -> str:
    """Return visible text in a style of STYLES."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text and has_colour() else text


def out_diff(text: str) -> None:
    """Write lines of a diff to stdout, in the styles of their sides."""
    for line in text.split("\n"):
        shown, side = visible(line), SIDES.get(line[:1])
        out(styled(shown, side) if side else shown)


def out(line: str = "") -> None:
    """Write a line to stdout. The caller has made untrusted text visible."""
    sys.stdout.write(f"{line}\n")


def write(text: str) -> None:
    """Write text to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def counted(number: int, thing: str) -> str:
    """Return `1 file` or `2,000 files`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def json_out(body: bytes) -> None:
    """Write JSON to stdout, unchanged, as a line."""
    sys.stdout.flush()
    sys.stdout.buffer.write(body.rstrip(b"\n") + b"\n")
    sys.stdout.buffer.flush()


def answer_out(body: bytes, show: Callable[[Any], None], *, as_json: bool) -> None:
    """Write the answer of a tool as JSON, or as `show` does. Exits with NOTHING without results."""
    answer = json.loads(body)
    if as_json:
        json_out(body)
    else:
        show(answer)
    if not answer["results"]:
        sys.exit(NOTHING)


def text_of(name: str, most: int) -> str:
    """Return the text of a file with at most so many bytes; `-` is stdin. Raises CliError."""
    try:
        with click.open_file(name, "rb") as file:
            data: bytes = file.read(most + 1)
    except OSError as error:
        raise CliError(f"{name} cannot be read: {error.strerror}.", "NOT_READABLE") from error
    if len(data) > most:
        raise CliError(f"The text has more than {most:,} bytes.", "TOO_LARGE")
    return data.decode("utf-8", "replace")


def note(message: str) -> None:
    """Write a message to stderr."""
    sys.stdout.flush()
    sys.stderr.write(f"{visible(message, lines=True)}\n")
    sys.stderr.flush()


def notes(answer: Mapping[str, Any], *names: str) -> None:
    """Write what an answer says beside its rows to stderr."""
    for name in names:
        if text := answer.get(name):
            note(f"{LABELS.get(name, '')}{text}")


def end_quietly() -> None:
    """Let the interpreter end without an error, as a stream cannot be written any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
