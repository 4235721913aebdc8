"""Makes a small data folder by the doors that users have, packs it, and opens it elsewhere."""

import json
import re
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.mapped import files
from apps.index.texts import text_index
from apps.ingest.runs.chunker_version import CHUNKER_VERSION
from tests.browser.product import Product, running
from tests.support.ingested import CALLER, SAMPLE, write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE, wait_until

HERE = Path(__file__).parent
FACTS = "kept.json"
REPOSITORY = SAMPLE | CALLER
AGENT, COMMAND = "code_tour", "first_look"
CONVERSATION, OF_AGENT, OF_COMMAND = "kept", "kept-agent", "kept-command"
# Nothing listens there. Keys are encrypted with the secret, which is none.
SERVER, KEY = "http://127.0.0.1:9/v1", "a key of nothing"
SECRET = "not a secret: it encrypts nothing but what a test has kept"
# What belongs to a process, and what is a secret.
LEFT_OUT = re.compile(r"data/(logs|server\.|.*\.lock$|admin-password\.txt|\.)")


def present_format() -> dict[str, Any]:
    """What a data folder is made of: a change of any of it needs a folder that is kept."""
    leaves = MigrationLoader(None).graph.leaf_nodes()
    own = [(app, name) for app, name in leaves if apps.get_app_config(app).name.startswith("apps.")]
    return {
        "migrations": dict(sorted(own)),
        "parts": files.VERSION,
        "texts": text_index.VERSION,
        "chunker": CHUNKER_VERSION,
        "model": DEFAULT_MODEL,
    }


def kept() -> list[Path]:
    """All archives, the oldest first."""
    return sorted(HERE.glob("*.tar.xz"))


def facts_of(archive: Path) -> dict[str, Any]:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(FACTS)
        assert file is not None
        facts: dict[str, Any] = json.load(file)
        return facts


def make(archive: Path) -> None:
    with TemporaryDirectory(prefix="codeinfo-kept-") as name:
        folder = Path(name)
        with running(folder, CODEINFO_SECRET_KEY=SECRET) as product:
            ingest_into(product, write_files(product.repos / "lighthouse", REPOSITORY))
            wait_until(lambda: any((product.data / "grams").glob("*.grams")))
            _talk(product)
            _save_server(product)
            facts = {"format": present_format(), "folder": name, "turns": turns(product)}
        (folder / FACTS).write_text(json.dumps(facts, indent=1))
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(folder / FACTS, FACTS)
            tar.add(folder / "data", "data", filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if LEFT_OUT.match(entry.name):
        return None
    entry.uname = entry.gname = ""
    entry.uid = entry.gid = 0
    return entry


def _talk(product: Product) -> None:
    chat = {"provider": "builtin", "model": "search", "conversationId": CONVERSATION}
    run = {"conversationId": OF_AGENT, "instruction": "Where are retries counted?"}
    command = {"conversationId": OF_COMMAND, "commandName": COMMAND}
    for path, body in (
        ("/chat", chat | {"message": "How long is the wait before an attempt?"}),
        ("/chat", chat | {"message": "Who waits?", "parentTurnId": None}),
        (f"/agents/{AGENT}/run", run),
        (f"/agents/{AGENT}/commands/run", command),
    ):
        answer = httpx.post(product.url + path, json=body, timeout=PATIENCE)
        assert answer.status_code == 202, answer.text
        wait_until(lambda: not _is_running(product))


def _is_running(product: Product) -> bool:
    """Whether a turn of a conversation has no end yet."""
    with closing(sqlite3.connect(product.data / "codeinfo.sqlite3")) as database:
        (turns,) = database.execute(
            "SELECT count(*) FROM conversations_turn WHERE status = 'running'"
        ).fetchone()
        return bool(turns)


def _save_server(product: Product) -> None:
    with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
        client.get("/providers").raise_for_status()
        headers = {"x-csrftoken": client.cookies["csrftoken"], "origin": product.url}
        body = {"address": SERVER, "key": KEY, "do": "save"}
        client.post("/ui/providers/openai", data=body, headers=headers)
        assert SERVER in client.get("/providers").text


def turns(product: Product) -> dict[str, list[list[str]]]:
    """Role, status and content of the turns of each conversation."""
    found = {}
    for name in (CONVERSATION, OF_AGENT, OF_COMMAND):
        answer = httpx.get(f"{product.url}/conversations/{name}/turns", timeout=PATIENCE)
        items = answer.json()["items"]
        found[name] = [[turn[key] for key in ("role", "status", "content")] for turn in items]
        assert found[name], answer.text
    return found


def opened(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive, with its repository, as if both had always been in `folder`. Return its
    facts."""
    facts = facts_of(archive)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    write_files(folder / "repos" / "lighthouse", REPOSITORY)
    _move(folder / "data" / "codeinfo.sqlite3", facts["folder"], str(folder))
    return facts


def _move(database: Path, old: str, new: str) -> None:
    """Replace a folder in all texts, whatever the tables are."""
    with closing(sqlite3.connect(database)) as rows, rows:
        tables = rows.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'")
        for (table,) in tables.fetchall():
            for _, column, *_ in rows.execute(f'PRAGMA table_info("{table}")').fetchall():
                rows.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) '
                    f'WHERE typeof("{column}") = \'text\' AND instr("{column}", ?)',
                    (old, new, old),
                )
