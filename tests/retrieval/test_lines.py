"""Every match is on disk at exactly its lines: searched over HTTP in a real index."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from apps.code.chunking import decode, lines_of
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, write_files

__all__ = ["fill_chroma"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES: dict[str, str | bytes] = {
    "README.md": "# Harbour\n\nKeeps track of ships.\n\n## Install\n\nRun `make install`.\n\n"
    "## Usage\n\nCall the harbour master.\n",
    "src/ships.py": '"""Ships and where they lie."""\n\nimport json\n\n\n'
    "class Ship:\n    def __init__(self, name):\n        self.name = name\n\n"
    "    def moor(self, berth):\n        return (self.name, berth)\n\n\n"
    + "".join(f"def unload_{i}(ship):\n    return ship.cargo[{i}]\n\n\n" for i in range(60)),
    "src/windows.ts": b"export interface Berth {\r\n  depth: number;\r\n}\r\n\r\n"
    b"export function deepest(berths: Berth[]): Berth {\r\n"
    b"  return berths.reduce((a, b) => (a.depth > b.depth ? a : b));\r\n}\r\n",
    "src/bom.js": b"\xef\xbb\xbffunction signal(flag) {\n  return flag.hoist();\n}\n",
    "src/latin.c": b"/* le capitaine \xe9tait l\xe0 */\nint captain(void) {\n  return 1;\n}\n",
    "src/odd.py": "def form_feed():\n    return 1\n\x0c\n\n"
    "def separators():\n    return 'a\u2028b\u0085c'\n\n\ndef last():\n    return 'no newline'",
    "src/carriage.txt": "one tide\rstill the same line\nsecond tide\n",
    "docs/unicode.md": "# Häfen 港\n\nDer Hafenmeister grüßt 😀 jedes Schiff.\n\n## Ebbe\n\n"
    "Niedrigwasser.\n",
    # Longer than a chunk may be, in a file that is not all long lines.
    "src/long.go": "package main\n\n// "
    + "tide " * 400
    + "\n"
    + "".join(f"func Tide{i}() int {{\n\treturn {i}\n}}\n\n" for i in range(90)),
    "src/lib.rs": "pub struct Crane;\n\nimpl Crane {\n    pub fn lift(&self, tons: u32) -> bool {\n"
    "        tons < 40\n    }\n}\n",
    "config/harbour.yaml": "berths:\n  - name: north\n    depth: 12\n"
    "  - name: south\n    depth: 7\n",
    "scripts/deploy.sh": "#!/bin/sh\nset -e\ndeploy() {\n  echo mooring $1\n}\ndeploy north\n",
    "Makefile": "install:\n\tpip install .\n\ntest:\n\tpytest\n",
    "web/page.html": "<html>\n<body>\n<h1>Harbour</h1>\n</body>\n</html>\n",
    "db/schema.sql": "CREATE TABLE ships (\n  name TEXT,\n  berth INTEGER\n);\n",
}

QUESTIONS = (
    "moor a ship at a berth",
    "unload cargo of a ship",
    "deepest berth",
    "hoist a signal flag",
    "captain",
    "form feed",
    "line and paragraph separators",
    "no newline at the end",
    "tide",
    "Hafenmeister grüßt",
    "crane lifts tons",
    "depth of the north berth",
    "deploy script",
    "how to install",
    "run the tests",
    "html page heading",
    "create table ships",
    "class Ship",
    "unload_37",
    "Niedrigwasser Ebbe",
    "second tide carriage return",
    "import json",
    "harbour usage",
)


@pytest.fixture
def harbour(folder: Path, transactional_db: None) -> Path:
    ingest(write_files(folder, FILES), "harbour")
    return folder


def test_each_match_is_found_at_its_lines(
    harbour: Path, client: Client, configure, subtests=None
) -> None:
    # Everything the index has is an answer, however far from the question.
    configure(retrieval_cutoff_disabled=True)
    matched: set[str] = set()
    count = parts = 0
    for question in QUESTIONS:
        body = {"query": question, "limit": 20}
        answer = client.post("/tools/vector-search", body, content_type="application/json").json()
        assert answer["results"], question
        for match in answer["results"]:
            count += 1
            matched.add(match["relPath"])
            parts += check(harbour, match)
    assert count > 200
    assert parts > 0
    assert matched == set(FILES)


def ingested(root: Path, path: str) -> list[str]:
    data = (root / path).read_bytes()
    return lines_of(data.decode("latin-1") if path == "src/latin.c" else decode(data))


def check(root: Path, match: dict) -> bool:
    """Whether the match is only a part of its one line, which was longer than a chunk may be."""
    lines = ingested(root, match["relPath"])
    start, end = match["startLine"], match["endLine"]
    where = (match["relPath"], start, end)
    assert 1 <= start <= end <= len(lines), where
    text = "\n".join(lines[start - 1 : end])
    part = start == end and len(text) > 1500
    assert match["chunk"] in text if part else match["chunk"] == text, where
    assert match["lineCount"] == end - start + 1, where
    assert match["hostPath"] == str(root / match["relPath"])
    return part


def test_a_cut_match_is_the_beginning_of_its_lines(
    harbour: Path, client: Client, configure
) -> None:
    configure(tool_chunk_max_chars=40, retrieval_cutoff_disabled=True)
    cut = 0
    for question in QUESTIONS:
        body = {"query": question, "limit": 20}
        answer = client.post("/tools/vector-search", body, content_type="application/json").json()
        for match in answer["results"]:
            lines = ingested(harbour, match["relPath"])
            text = "\n".join(lines[match["startLine"] - 1 : match["endLine"]])
            if match["startLine"] < match["endLine"]:
                assert text.startswith(match["chunk"])
            cut += len(match["chunk"]) < len(text)
    assert cut > 50


def test_a_match_opens_in_the_viewer_at_its_lines(harbour: Path, client: Client) -> None:
    body = {"query": "moor a ship at a berth", "repository": "harbour"}
    answer = client.post("/tools/vector-search", body, content_type="application/json").json()
    match = answer["results"][0]
    viewer = client.get(
        "/ui/retrieval/source",
        {
            "repo": match["repo"],
            "path": match["relPath"],
            "start": match["startLine"],
            "end": match["endLine"],
        },
        follow=True,
    ).content.decode()
    assert f'class="line is-cited"><a class="ln" name="L{match["startLine"]}"' in viewer
    assert viewer.count("is-cited") == match["lineCount"]
    assert "Same as on disk" in viewer


def test_a_query_with_a_zero_vector_has_no_nearest_chunks(
    harbour: Path, client: Client, configure, fill_chroma: Callable[[], None]
) -> None:
    fill_chroma()
    configure(retrieval_mode="vector")
    body = {"query": "港"}
    response = client.post("/tools/vector-search", body, content_type="application/json")
    assert (response.status_code, response.json()["results"]) == (200, [])
    page = client.get("/search", {"q": "港"}).content.decode()
    assert "No matches for “港”" in page


def test_a_query_with_a_zero_vector_matches_by_words(harbour: Path, client: Client) -> None:
    body = {"query": "港"}
    answer = client.post("/tools/vector-search", body, content_type="application/json").json()
    found = [(match["relPath"], match["matchedBy"], match["score"]) for match in answer["results"]]
    assert found == [("docs/unicode.md", "words", None)]
    assert "degraded" not in answer
    assert "docs/unicode.md" in client.get("/search", {"q": "港"}).content.decode()
