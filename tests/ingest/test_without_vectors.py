"""Records, long lines and texts of unknown types are ingested: found by words, without vectors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.static import StaticCodeEmbedder
from apps.index import queries
from apps.index.models import Root
from apps.index.vectors.follower import follow
from apps.index.vectors.following import following
from tests.index.chroma_files import chroma_folder, stored
from tests.ingest.requests import ingested, paths, skipped
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.verification import verify

__all__ = ["chroma_folder"]
pytestmark = [pytest.mark.django_db, pytest.mark.door, pytest.mark.usefixtures("index")]

TABLES = "".join(
    f"CREATE TABLE t_{n} (\n  id bigint NOT NULL,\n  moored_{n} text\n);\n\n" for n in range(1_999)
)
PATH = " ".join(f"{n}.{n % 10} {n}" for n in range(1_000))
LOGO = (
    "export function BrandLogo({ size }: { size: number }) {\n"
    "  const label = useLabel('brand')\n"
    "  return (\n    <svg width={size} aria-label={label}>\n"
    f'      <path d="M{PATH}Zquayend" />\n    </svg>\n  )\n}}\n'
)
BULK: dict[str, str | bytes] = {
    "db/structure.sql": TABLES,
    "deploy/all.yaml": "".join(f"berth_{n}:\n  depth: {n}\n" for n in range(6_000)),
    "data/ports.json": '{"harbours": [' + '{"name": "Skagen"}, ' * 1_000 + "0]}",
    "data/feed.xml": "<feed>\n" + "<entry>Lerwick</entry>\n" * 6_000 + "</feed>\n",
    "data/rows.csv": "name,draught\nGannet,4.5\n",
    "i18n/de.po": 'msgid "Cast off"\nmsgstr "Alle Leinen sofort los"\n',
    "icon.svg": '<svg><path d="M0 0"/></svg>\n',
    "words.txt": "".join(f"word{n}\n" for n in range(6_000)),
}
TEXTS: dict[str, str | bytes] = {
    "src/Logo.tsx": LOGO,
    "keeper.rune": "The keeper lights the lantern at dusk.\n",
    "LANTERNS": "Every lantern burns rapeseed oil.\n",
    "wide.unknown": "Every buoy has a bell.\n".encode("utf-16"),
    "old.koi": "Фонарь горит всю ночь, и смотритель спит.\n".encode("koi8-r"),
    "src/moor.py": 'def moor(ship):\n    """Tie a ship to the quay."""\n    return ship\n',
}
LEFT_OUT: dict[str, tuple[bytes, str]] = {
    "web/bundle.js": (b"function a(b){return c(b);}" * 4_000, "Minified"),
    "web/site.css": (b".a{color:red;margin:0}.b{top:0;left:0}" * 1_000, "Minified"),
    "photo.png": (b"\x89PNG", "Binary"),
    "blob.unknown": (bytes(range(1, 256)) * 20, "Binary"),
    "run.log": (b"started\n", "Log"),
}
Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def port(folder: Path) -> Path:
    files = {name: content for name, (content, _) in LEFT_OUT.items()}
    return write_files(folder / "port", {**BULK, **TEXTS, **files})


@pytest.fixture
def ask(client: Client) -> Ask:
    """ask("grep", pattern="x") are the results of a tool over HTTP."""

    def asked(tool: str, **body: Any) -> list[dict[str, Any]]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        assert response.status_code == 200, response.content
        return list(response.json()["results"])

    return asked


def test_only_minified_code_binary_files_and_logs_are_left_out(client: Client, port: Path) -> None:
    ingested(client, port)
    assert paths() == sorted({**BULK, **TEXTS})
    assert skipped(client) == {name: reason for name, (_, reason) in LEFT_OUT.items()}


def test_the_counts_and_the_page_tell_what_has_no_vector(client: Client, port: Path) -> None:
    wire = ingested(client, port)
    root = Root.objects.get()
    rows = {file.path: file for file in queries.live_files(root).ingested()}
    assert {path for path, row in rows.items() if not row.embedded} == {*BULK}
    assert 0 < rows["src/Logo.tsx"].embedded < rows["src/Logo.tsx"].chunks
    assert wire["counts"]["embedded"] == root.embedded == sum(r.embedded for r in rows.values())
    assert wire["counts"]["chunks"] == root.chunks == sum(row.chunks for row in rows.values())
    page = client.get(f"/ui/ingest/root/{root.id}").content.decode()
    assert f"Without vectors, found by their words: {len(BULK) + 1} files" in page
    assert verify(source=True) == []


def test_they_are_found_by_words_definitions_and_lines(port: Path, ask: Ask) -> None:
    ingest(port)
    found = ask("vector-search", query="moored_77")
    assert [(one["relPath"], one["score"]) for one in found[:1]] == [("db/structure.sql", None)]
    assert ask("vector-search", query="alle Leinen sofort los")[0]["relPath"] == "i18n/de.po"
    assert ask("vector-search", query="what the keeper does at dusk")[0]["relPath"] == "keeper.rune"
    for name, path in {"t_1998": "db/structure.sql", "BrandLogo": "src/Logo.tsx"}.items():
        assert [one["relPath"] for one in ask("symbol-definitions", name=name)] == [path]
    (line,) = ask("grep", pattern="quayend")
    assert (line["relPath"], line["startLine"]) == ("src/Logo.tsx", 5)


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        ("CREATE TABLE public.{} (", "table"),
        ('create table if not exists "port"."{}" (', "table"),
        ("CREATE TABLE [dbo].[{}] (", "table"),
        ("CREATE MATERIALIZED VIEW `port`.`{}` AS (", "view"),
    ],
)
def test_a_table_is_found_without_its_schema_and_quotes(
    folder: Path, ask: Ask, template: str, kind: str
) -> None:
    tables = (template.format(f"berth_{n}") + "\n  id bigint\n);\n\n" for n in range(1_999))
    ingest(write_files(folder / "port", {"structure.sql": "".join(tables)}))
    (found,) = ask("symbol-definitions", name="berth_1998")
    assert (found["relPath"], found["kind"]) == ("structure.sql", kind)
    assert ask("symbol-definitions", name="public") == []


def test_without_any_word_of_a_question_they_are_no_results(port: Path, ask: Ask) -> None:
    ingest(port)
    found = ask("vector-search", query="tie a ship to the quay", limit=20)
    assert found[0]["relPath"] == "src/moor.py"
    assert not {one["relPath"] for one in found} & {*BULK}


def test_a_later_run_and_another_model_do_not_embed_them(
    port: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = StaticCodeEmbedder.embed_documents

    def noting(self: StaticCodeEmbedder, texts: Any) -> Any:
        asked.extend(text.path for text in texts)
        return real(self, texts)

    monkeypatch.setattr(StaticCodeEmbedder, "embed_documents", noting)
    ingest(port)
    assert set(asked) == {*TEXTS}
    asked.clear()
    write_files(port, {"db/structure.sql": TABLES + "-- end\n", "new.csv": "a,b\n"})
    ingest(port)
    assert set(asked) <= {""}
    Root.objects.update(model="another")
    ingest(port)
    assert set(asked) - {""} == {*TEXTS}
    assert run_ingest(port).message == "No changes detected"


def test_a_folder_without_a_vector_is_searched(folder: Path, ask: Ask) -> None:
    root = ingest(write_files(folder / "rows", {"rows.csv": "name,draught\nGannet,4.5\n"}))
    assert (root.chunks, root.embedded) == (1, 0)
    assert [one["relPath"] for one in ask("vector-search", query="draught of Gannet")] == [
        "rows.csv"
    ]
    assert verify() == []


@pytest.mark.usefixtures("chroma_folder")
def test_chroma_gets_what_has_a_vector(port: Path) -> None:
    root = ingest(port)
    follow()
    assert following() == ("complete", root.embedded, root.embedded, "")
    rows = stored()
    assert len(rows) == root.embedded
    assert {row["relPath"] for row in rows.values()} == {*TEXTS}
