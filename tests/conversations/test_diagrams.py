"""Diagrams: drawn in a process of their own, cleaned, remembered, and never the page's undoing."""

import base64
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.test import Client

from apps.conversations.answers import diagrams, markdown
from apps.conversations.answers.diagrams import Diagram, NotDrawn

pytestmark = pytest.mark.door


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(diagrams, "outcomes", {})
    yield


def svg(uri: str) -> str:
    head, _, data = uri.partition(",")
    assert head == "data:image/svg+xml;base64"
    return base64.b64decode(data).decode()


def test_a_diagram_is_an_image_in_both_themes_with_its_size() -> None:
    drawn = diagrams.draw("flowchart LR\n  A[Discover] --> B[Chunk]")
    assert isinstance(drawn, Diagram)
    assert drawn.width > 100 and drawn.height > 20
    assert "Discover" in svg(drawn.light)
    assert svg(drawn.light) != svg(drawn.dark)
    assert "foreignObject" not in svg(drawn.light)


def test_a_diagram_has_the_colours_of_the_page() -> None:
    drawn = diagrams.draw("flowchart LR\n  A[Discover] --> B[Chunk]")
    assert isinstance(drawn, Diagram)
    tokens = (settings.BASE_DIR / "static/css/tokens.css").read_text()
    for name in ("text-1", "line-3", "text-3"):
        light, dark = re.findall("#[0-9a-f]{6}", re.findall(rf"--{name}: .*", tokens)[0])
        assert light in svg(drawn.light) and dark in svg(drawn.dark)


def test_what_was_drawn_is_in_the_page_at_once() -> None:
    source = "flowchart LR\n  A --> B\n"
    diagrams.draw(source)
    html = markdown.plain(f"```mermaid\n{source}```")
    assert html.count('<img class="diagram__img') == 2
    assert "pending" not in html


def test_text_that_is_no_diagram_is_kept_with_the_reason() -> None:
    outcome = diagrams.draw("this is no diagram\n")
    assert isinstance(outcome, NotDrawn)
    html = markdown.plain("```mermaid\nthis is no diagram\n```")
    assert "Diagram failed to render" in html
    assert "this is no diagram" in html


def test_drawing_that_takes_too_long_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagrams, "DRAW", "while True: pass")
    monkeypatch.setattr(diagrams, "TIME_LIMIT_SECONDS", 0.3)
    assert diagrams.draw("flowchart LR\n A --> B") == NotDrawn("Drawing took too long.")


def test_a_drawing_process_that_dies_is_a_reason_and_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagrams, "DRAW", "import os; os.kill(os.getpid(), 9)")
    assert diagrams.draw("flowchart LR") == NotDrawn("The drawing process ended.")


def test_the_log_has_the_stack_of_a_drawing_process_that_crashes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(diagrams, "DRAW", "import os; os.abort()")
    with caplog.at_level(logging.WARNING, "codeinfo.conversations"):
        assert diagrams.draw("flowchart LR") == NotDrawn("The drawing process ended.")
    entry = caplog.records[0]
    assert entry.message == "drawing process lost"
    assert "Fatal Python error: Aborted" in vars(entry)["context"]["stack"]


@pytest.mark.fault("Markup in answers and names")
@pytest.mark.django_db
def test_modules_of_the_current_folder_and_of_pythonpath_are_not_run(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "MARK"
    for module in ("mermaidx", "json", "sitecustomize"):
        (tmp_path / f"{module}.py").write_text(f"open({str(mark)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = client.post("/ui/chat/diagram", {"source": "flowchart LR\n  A --> B"})
    assert not mark.exists()
    assert "<img" in answer.content.decode()


@pytest.mark.fault("Markup in answers and names")
def test_the_drawing_process_gets_no_variable_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEINFO_OPENAI_API_KEY", "canary")
    monkeypatch.setattr(diagrams, "DRAW", "import os, sys; sys.exit(str(dict(os.environ)))")
    outcome = diagrams.draw("flowchart LR")
    assert isinstance(outcome, NotDrawn)
    assert "canary" not in outcome.reason


NESTED = "<g>" * 5_000 + "</g>" * 5_000


@pytest.mark.fault("Markup in answers and names")
@pytest.mark.parametrize(
    "written",
    [
        "",
        "Traceback",
        "[" * 100_000,
        "{}",
        "[]",
        '["<svg/>"]',
        "1",
        '"<svg"',
        json.dumps('<svg viewBox="0 0 1e999 1"/>'),
        json.dumps('<svg viewBox="0 0 x"/>'),
        json.dumps(f"<svg>{NESTED}</svg>"),
        json.dumps('<!DOCTYPE svg [<!ENTITY a "b">]><svg viewBox="0 0 1 1"/>'),
        "x" * 10_000_000,
    ],
    ids=range(13),
)
def test_output_that_is_no_drawing_is_a_reason_and_no_error(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    output = tmp_path / "output"
    output.write_text(written)
    monkeypatch.setattr(diagrams, "DRAW", f"print(open({str(output)!r}).read(), end='')")
    answer = client.post("/ui/chat/diagram", {"source": "flowchart LR"})
    assert answer.status_code == 200
    assert "Diagram failed to render" in answer.content.decode()


@pytest.mark.fault("Markup in answers and names")
def test_a_drawing_process_that_writes_without_end_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagrams, "DRAW", "while True: print('x' * 65_536)")
    assert diagrams.draw("flowchart LR") == NotDrawn("The drawing is too large.")


def test_an_endless_source_is_not_tried_and_the_page_says_why() -> None:
    source = "x" * 20_001 + "\n"
    assert diagrams.draw(source) == NotDrawn("The diagram is too long.")
    assert "The diagram is too long." in markdown.plain(f"```mermaid\n{source}```")


def test_without_its_library_the_source_is_shown_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mermaidx", None)
    diagrams.draw("flowchart LR\n A --> B\n")
    html = markdown.plain("```mermaid\nflowchart LR\n A --> B\n```")
    assert "-r requirements.txt and start codeinfo again." in html
    assert "A --&gt; B" in html


def test_only_the_latest_outcomes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagrams, "MAX_CACHED", 2)
    monkeypatch.setattr(diagrams, "DRAW", "import sys; sys.exit('no')")
    for source in ("a", "b", "c"):
        diagrams.draw(source)
    assert diagrams.drawn("a") is None
    assert diagrams.drawn("c") == NotDrawn("no")


NS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


@pytest.mark.fault("Markup in answers and names")
@pytest.mark.parametrize(
    "harm",
    [
        "<script>alert(1)</script>",
        '<rect onclick="alert(1)"/>',
        '<rect ONLOAD="alert(1)"/>',
        '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
        '<use xlink:href="https://example.org/x.svg#y"/>',
        '<use href="data:image/svg+xml;base64,PHN2Zz4="/>',
        '<image href="https://example.org/x.png"/>',
        "<foreignObject><b>x</b></foreignObject>",
        '<rect style="fill: url(https://example.org/x)"/>',
        '<rect fill="url( https://example.org/x )"/>',
        '<style>@import "https://example.org/x.css"; rect { fill: red }</style>',
        "<style>rect { background: URL(//example.org/x) }</style>",
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        '<g><g><script href="https://example.org/x.js"/></g></g>',
    ],
)
def test_what_could_run_or_load_is_taken_out(harm: str) -> None:
    root = ElementTree.fromstring(f'<svg {NS} viewBox="0 0 10 10"><path d="M0 0"/>{harm}</svg>')
    diagrams.clean(root)
    cleaned = ElementTree.tostring(root).decode().lower()
    assert not any(
        bad in cleaned
        for bad in (
            "script",
            "alert",
            "example.org",
            "onclick",
            "onload",
            "foreignobject",
            "base64",
        )
    )
    assert "path" in cleaned


def test_what_a_drawing_needs_of_itself_stays() -> None:
    root = ElementTree.fromstring(
        f'<svg {NS}><path marker-end="url(#end)"/><use href="#a"/>'
        '<style>rect { filter: url("#shadow") }</style></svg>'
    )
    diagrams.clean(root)
    cleaned = ElementTree.tostring(root).decode()
    assert "url(#end)" in cleaned and 'href="#a"' in cleaned and "#shadow" in cleaned
