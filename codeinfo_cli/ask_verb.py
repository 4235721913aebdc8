"""`codeinfo ask`: an answer, as it is written, and the lines that it cites."""

import json
import os
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from codeinfo_cli import options, scope, terminal
from codeinfo_cli.client import Client, connected
from codeinfo_cli.errors import CliError
from codeinfo_cli.terminal import note, out, styled, visible

# Lines after a path: `:10`, `:10-20`, `:L10–L20`
_LINES = re.compile(r":L?(\d{1,7})(?:\s?[-–]\s?L?(\d{1,7}))?")
# Matches that are listed if the answer cites none
MOST_UNCITED = 10
CUT = 100
# A link to a page of the server, and what to type instead of opening it
_PAGE = re.compile(r"\[([^\[\]\n]{1,80})\]\((/[a-z/]{0,40})\)")
VERB_OF_PAGE = {
    "/providers": "codeinfo status",
    "/lmstudio": "codeinfo status",
    "/ingest": "codeinfo ingest",
    "/search": "codeinfo search",
    "/": "codeinfo status",
}


@click.command()
@click.argument("question", nargs=-1, required=True)
@click.option("-p", "--provider", metavar="ID", help="By default the first that is available.")
@click.option("-m", "--model", metavar="NAME", help="By default its first one.")
@click.option("-c", "--conversation", metavar="ID", help="Continue a conversation.")
@click.option("--thinking", is_flag=True, help="Also write the reasoning, to stderr.")
@options.repository
@options.as_json
def ask(
    question: tuple[str, ...],
    provider: str | None,
    model: str | None,
    conversation: str | None,
    thinking: bool,
    repos: tuple[str, ...],
    every: bool,
    as_json: bool,
) -> None:
    """Writes the answer of a language model as it comes, then its citations. Without a model, the
    provider `builtin` quotes the passages that fit best.

    The default provider is CODEINFO_CHAT_PROVIDER, if it is set. Ctrl-C stops the answer. --json
    writes each event of POST /chat as a line.
    """
    with connected() as client:
        provider, model = _choose(client, provider, model)
        # A conversation keeps what it is limited to.
        keeps = conversation and not (repos or every)
        limits = {} if keeps else _scope(client, repos, every)
        conversation = conversation or str(uuid.uuid4())
        body = {
            "provider": provider,
            "model": model,
            "conversationId": conversation,
            "message": " ".join(question),
            "cancelOnDisconnect": True,
            **limits,
        }
        with closing(client.events("/chat", body)) as events:
            if as_json:
                _write_events(events)
            else:
                _Answer(thinking=thinking).show(events)
    if not as_json:
        note(f"Continue: codeinfo ask -c {conversation} …")


def _choose(client: Client, provider: str | None, model: str | None) -> tuple[str, str]:
    """Return provider and model: those that are named, else the first that can answer."""
    provider = provider or os.environ.get("CODEINFO_CHAT_PROVIDER") or None
    if provider and model:
        return provider, model
    offers = json.loads(client.get("/chat/providers"))["providers"]
    ids = [provider] if provider else [offer["id"] for offer in offers if offer["available"]]
    for provider_id in ids:
        answer = json.loads(client.get("/chat/models", provider=provider_id))
        if answer.get("models") and answer["provider"] == provider_id:
            return provider_id, model or answer["models"][0]["key"]
    known = ", ".join(offer["id"] for offer in offers)
    reason = next((str(o.get("reason") or "") for o in offers if o["id"] == provider), "")
    message = f"{provider or 'No provider'} has no model that can answer. {reason}".strip()
    raise CliError(message, "PROVIDER_UNAVAILABLE", next_step=f"Providers: {known}.")


def _scope(client: Client, repos: Sequence[str], every: bool) -> dict[str, list[str]]:
    """Return the field of POST /chat that limits an answer to some repositories of several."""
    chosen = scope.chosen(client, repos, every)
    is_limited = chosen and len(scope.repositories(client)) > 1
    # --all lifts the limit that a conversation has.
    return {"scope": chosen} if is_limited or every else {}


def _write_events(events: Iterator[bytes]) -> None:
    for data in events:
        terminal.json_out(data)
        event = json.loads(data)
        if event["type"] == "error":
            raise CliError(event["message"], "ANSWER_FAILED", body=b"")
        if event["type"] == "complete":
            return
    raise _broken_off()


def _broken_off() -> CliError:
    return CliError("The answer broke off.", "SERVER_LOST", next_step="Ask again.")


class _Answer:
    """Shows the events of one answer."""

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._text: list[str] = []
        self._rows: list[Mapping[str, Any]] = []

    def show(self, events: Iterator[bytes]) -> None:
        """Write the answer and its citations. Raises CliError if it fails."""
        for data in events:
            event = json.loads(data)
            match event["type"]:
                case "token":
                    self._add(without_links(event["content"]))
                case "final" if not self._text:
                    self._add(without_links(event["message"]["content"]))
                case "analysis" if self._thinking:
                    sys.stderr.write(visible(event["content"], lines=True))
                    sys.stderr.flush()
                case "tool-request":
                    note(f"{event['name']} {_cut(event.get('parameters'))}")
                case "tool-result":
                    self._learn(event)
                case "warning":
                    note(event["message"])
                case "error":
                    self._end_line()
                    raise CliError(event["message"], "ANSWER_FAILED")
                case "complete":
                    self._end_line()
                    self._cite()
                    return
        self._end_line()
        raise _broken_off()

    def _add(self, text: str) -> None:
        self._text.append(text)
        terminal.write(visible(text, lines=True))

    def _end_line(self) -> None:
        if self._text and not self._text[-1].endswith("\n"):
            out()

    def _learn(self, event: Mapping[str, Any]) -> None:
        if event.get("stage") == "error":
            note(f"{event['name']}: {event.get('errorTrimmed') or 'failed'}")
        result = event.get("result")
        rows = result.get("results") if isinstance(result, dict) else None
        self._rows += [row for row in rows or [] if _is_passage(row)]

    def _cite(self) -> None:
        cited = list(dict.fromkeys(citations("".join(self._text), self._rows)))
        others = [] if cited else [_place(row) for row in self._rows]
        places = cited or list(dict.fromkeys(others))[:MOST_UNCITED]
        if not places:
            return
        out()
        out(styled("Citations" if cited else "Found", "name"))
        for number, (path, lines) in enumerate(places, 1):
            at = styled(":", "mark") + styled(lines, "line") if lines else ""
            out(f"  {number:>2}  {styled(path, 'path')}{at}")


def without_links(text: str) -> str:
    """Return the text with a verb in place of each link to a page that has one."""

    def verb(link: re.Match[str]) -> str:
        named = VERB_OF_PAGE.get(link[2])
        return f"{link[1]} (`{named}`)" if named else link[0]

    return _PAGE.sub(verb, text)


def _is_passage(row: object) -> bool:
    return isinstance(row, dict) and all(
        isinstance(row.get(key), str) for key in ("repo", "relPath")
    )


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return scope.Paths().of(row), scope.lines_of(row)


def citations(text: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the lines of passages that a text refers to as `path:10-20`, in its order.

    rows: the passages that its tools returned. A reference to other lines is none.
    """
    references: list[tuple[int, str, str]] = []
    paths = scope.Paths()
    files: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        files.setdefault((row["repo"], row["relPath"]), []).append(row)
    for (_, name), passages in files.items():
        start = text.find(f"{name}:")
        while start >= 0:
            end = start + len(name)
            lines = _LINES.match(text, end)
            if lines and _begins(text, start, passages[0]["repo"]):
                first, last = int(lines[1]), int(lines[2] or lines[1])
                if any(_overlaps(row, first, last) for row in passages):
                    shown = str(first) if first == last else f"{first}-{last}"
                    references.append((start, paths.of(passages[0]), shown))
            start = text.find(f"{name}:", end)
    for _, path, lines_ in sorted(references):
        yield path, lines_


def _begins(text: str, start: int, repository: str) -> bool:
    """Whether a path begins at `start`: alone, or after the id of its repository."""
    before = text[:start][-len(repository) - 1 :]
    if before == f"{repository}/":
        return True
    return not before or not (before[-1].isalnum() or before[-1] in "/._-")


def _overlaps(row: Mapping[str, Any], first: int, last: int) -> bool:
    start, end = row.get("startLine"), row.get("endLine")
    if not isinstance(start, int) or not isinstance(end, int):
        return False
    return start <= last and first <= end


def _cut(parameters: object) -> str:
    text = json.dumps(parameters, ensure_ascii=False) if parameters else ""
    return text if len(text) <= CUT else f"{text[:CUT]}…"
