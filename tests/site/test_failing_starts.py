"""Starts that fail: `serve` says in one sentence what is wrong and what to do, `doctor` agrees."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.browser.product import running
from tests.site.commands import env_of, manage
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.door

NOBODY = 65534
OPEN = "WARN others may read"


def refused(env: dict[str, str], *, user: bool = False) -> str:
    """The one sentence with which a start is refused; `doctor` must find something broken, too."""
    done = manage(env, "serve", user=user)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith(OPEN)]
    assert len(lines) == 1, lines
    message = manage(env, "doctor", user=user)
    assert message.returncode == 1, message.stdout
    assert "Traceback" not in message.stderr
    assert "BROKEN" in message.stdout or message.stderr == done.stderr, (
        message.stdout + message.stderr
    )
    return lines[0]


def broken(env: dict[str, str]) -> dict[str, str]:
    """What `doctor` finds broken, by id."""
    done = manage(env, "doctor", "--json")
    return {f["id"]: f["detail"] for f in json.loads(done.stdout)["checks"] if f["level"] == "bad"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a database."""
    data = tmp_path_factory.mktemp("made") / "data"
    done = manage(env_of(data), "migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return data


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    copy = tmp_path / "data"
    copy.mkdir()
    for name in ("codeinfo.sqlite3", "secret.key"):
        (copy / name).write_bytes((made / name).read_bytes())
    return copy


def random_bytes(database: Path) -> None:
    database.write_bytes(os.urandom(20_000))


def cut_off(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


@pytest.mark.fault("A start that cannot succeed")
@pytest.mark.parametrize("harm", [random_bytes, cut_off])
def test_a_damaged_database(data: Path, harm: Callable[[Path], None]) -> None:
    harm(data / "codeinfo.sqlite3")
    env = env_of(data)
    message = refused(env)
    assert str(data / "codeinfo.sqlite3") in message
    assert "damaged" in message and "backup" in message
    assert "damaged" in broken(env)["database"]


@pytest.mark.fault("A start that cannot succeed")
def test_a_folder_in_the_place_of_the_database(data: Path) -> None:
    (data / "codeinfo.sqlite3").unlink()
    (data / "codeinfo.sqlite3").mkdir()
    env = env_of(data)
    assert f"{data / 'codeinfo.sqlite3'} is a folder" in refused(env)
    assert "is a folder" in broken(env)["database"]


@pytest.mark.fault("A start that cannot succeed")
def test_a_database_of_a_newer_version(data: Path) -> None:
    with closing(sqlite3.connect(data / "codeinfo.sqlite3")) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, ?)",
            ("index", "0999_the_future", "2030-01-01"),
        )
        database.commit()
    env = env_of(data)
    message = refused(env)
    assert "made by a newer codeinfo" in message and "index.0999_the_future" in message
    assert "backup" in message
    assert "made by a newer codeinfo" in broken(env)["schema"]
    assert message in manage(env, "serve", "--no-migrate").stderr


# What is read of data from before the first release. The app index had the label ingest.
UNRELEASED = """
CREATE TABLE django_migrations (
    id integer PRIMARY KEY, app varchar(255), name varchar(255), applied datetime
);
INSERT INTO django_migrations (app, name, applied) VALUES
    ('contenttypes', '0001_initial', '2026-11-21'), ('auth', '0001_initial', '2026-11-21'),
    ('conversations', '0001_initial', '2026-11-21'), ('ingest', '0001_initial', '2026-11-21');
CREATE TABLE conversations_conversation (
    id varchar(128) PRIMARY KEY, title varchar(255), created_at datetime
);
INSERT INTO conversations_conversation VALUES ('c1', 'Who rotates?', '2026-11-22 10:00:00');
CREATE TABLE conversations_turn (
    id char(32) PRIMARY KEY, conversation_id varchar(128), role varchar(16), parts text,
    provider varchar(32), model varchar(255), source varchar(8), status varchar(16), error text,
    usage text, timing text, command text, inflight_id varchar(128), created_at datetime,
    owner varchar(64), heartbeat_at datetime, cancel_requested bool
);
INSERT INTO conversations_turn (
    id, conversation_id, role, parts, provider, model, source, status, created_at
) VALUES
    ('0e8f03971d33466cab1a58511aaa2d44', 'c1', 'user',
     '[{"type": "text", "text": "Who rotates?"}]', '', '', 'REST', 'ok', '2026-11-22 10:00:00'),
    ('51dd0ffdea4f4e86b26b3e13f362dac3', 'c1', 'assistant',
     '[{"type": "text", "text": "The lamp."}]', '', '', 'REST', 'ok', '2026-11-22 10:00:01');
"""


@pytest.mark.fault("A start that cannot succeed")
@pytest.mark.parametrize("place", ["data/codeinfo.sqlite3", "elsewhere.sqlite3"])
def test_data_from_before_the_first_release_is_set_aside_with_its_conversations(
    tmp_path: Path, place: str
) -> None:
    data, database = tmp_path / "data", tmp_path / place
    (data / "chroma").mkdir(parents=True)
    (data / "chroma" / "chroma.sqlite3").write_text("vectors")
    (data / "ingest-bases.json").write_text("[]")
    with closing(sqlite3.connect(database)) as old:
        old.executescript(UNRELEASED)
    env = env_of(data, DATABASE_URL=f"sqlite:///{database}")
    message = refused(env)
    assert "before the first release" in message and "manage.py set_aside" in message
    assert "before the first release" in broken(env)["schema"]
    assert "manage.py set_aside" in manage(env, "migrate").stderr

    done = manage(env, "set_aside")
    assert (done.returncode, done.stderr) == (0, "")
    [aside] = data.glob("set-aside-*")
    assert f"exported 1 conversation to {aside / 'conversations'}" in done.stdout
    [talk] = (aside / "conversations").iterdir()
    assert talk.read_text() == "# Who rotates?\n\n## Who rotates?\n\nThe lamp.\n\n"
    assert (aside / "chroma" / "chroma.sqlite3").read_text() == "vectors"
    assert (aside / database.name).exists() and not database.exists()
    assert {path.name for path in data.iterdir()} == {aside.name, "ingest-bases.json"}

    with running(tmp_path, DATABASE_URL=env["DATABASE_URL"]) as product:
        assert httpx.get(f"{product.url}/conversations").json() == {"items": []}
        assert httpx.get(f"{product.url}/ingest/roots").json()["roots"] == []
    done = manage(env, "set_aside")
    assert done.returncode == 1 and "nothing to set aside" in done.stderr
    assert list(data.glob("set-aside-*")) == [aside]


@pytest.mark.fault("A start that cannot succeed")
def test_a_database_that_another_process_holds(data: Path) -> None:
    with closing(sqlite3.connect(data / "codeinfo.sqlite3", isolation_level=None)) as other:
        other.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
        other.execute("DROP TABLE django_session")
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        done = manage(env_of(data), "serve")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Another process" in done.stderr and str(data / "codeinfo.sqlite3") in done.stderr


@pytest.mark.fault("A start that cannot succeed")
def test_a_file_in_the_place_of_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    message = refused(env_of(tmp_path / "data"))
    assert f"{tmp_path / 'data'} is a file" in message and "CODEINFO_DATA_DIR" in message


@pytest.mark.fault("A start that cannot succeed")
@pytest.mark.parametrize("content", ["", "short", "\n \n"])
def test_a_secret_key_that_is_empty_or_cut_off(data: Path, content: str) -> None:
    (data / "secret.key").write_text(content)
    message = refused(env_of(data))
    assert str(data / "secret.key") in message and "backup" in message and "delete" in message


@pytest.mark.fault("A start that cannot succeed")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("foo://user:canary-7@host/name", "DATABASE_URL must be"),
        ("nonsense", "DATABASE_URL must be"),
        ("postgres://user:canary-7@127.0.0.1:nine/name", "DATABASE_URL must be"),
        ("postgres://user:canary-7@127.0.0.1:9/name", "127.0.0.1:9 does not answer"),
    ],
)
def test_another_database_that_does_not_answer_or_cannot_be(
    data: Path, url: str, words: str
) -> None:
    message = refused(env_of(data, DATABASE_URL=url))
    assert words in message and "DATABASE_URL" in message
    assert "canary" not in message


@pytest.mark.fault("A start that cannot succeed")
def test_a_disk_that_is_read_only(made: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 20) as disk:
        for file in made.glob("*.*"):
            (disk / file.name).write_bytes(file.read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        env = env_of(disk)
        message = refused(env)
        assert f"{disk} cannot be written" in message and "Read-only file system" in message
        assert "cannot be written" in broken(env)["data"]
        # Nothing was ever there: not even the key can be made.
        assert "cannot be written" in refused(env_of(disk / "new"))


@pytest.mark.fault("A start that cannot succeed")
def test_files_of_another_user(data: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    secret, database = data / "secret.key", data / "codeinfo.sqlite3"
    os.chown(secret, NOBODY, NOBODY)
    secret.chmod(0o600)
    assert f"{secret} cannot be read" in refused(env_of(data), user=True)
    os.chown(secret, 0, 0)

    os.chown(database, NOBODY, NOBODY)
    database.chmod(0o600)
    message = refused(env_of(data), user=True)
    assert f"{database} cannot be" in message
    os.chown(database, 0, 0)

    os.chown(data, NOBODY, NOBODY)
    data.chmod(0o755)  # which is told, too
    message = refused(env_of(data), user=True)
    assert f"{data} cannot be written" in message and "Permission denied" in message
    assert "cannot be written" in refused(env_of(data / "sub" / "data"), user=True)


@pytest.mark.fault("A start that cannot succeed")
def test_a_fault_that_nobody_foresaw_is_a_sentence_here_and_a_traceback_in_the_log(
    data: Path, tmp_path: Path
) -> None:
    (data / "admin-password.txt").mkdir()
    log = data / "logs" / "server.log"
    done = manage(env_of(data), "serve")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "admin-password.txt" in done.stderr
    assert str(log) in done.stderr
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", "near", "1.4"),
        ("CODEINFO_RETRIEVAL_CUTOFF_DISABLED", "maybe", "False"),
    ],
)
def test_a_wrong_setting_of_retrieval_warns_and_does_not_stop_the_start(
    tmp_path: Path, name: str, value: str, default: str
) -> None:
    env = env_of(tmp_path / "data", **{name: value})
    done = manage(env, "check")
    assert done.returncode == 0, done.stderr
    sentence = f"{name} cannot be {value!r}: the default, {default}, is used"
    assert sentence in done.stderr
    logged = json.loads((tmp_path / "data/logs/server.log").read_text().splitlines()[-1])
    assert (logged["level"], logged["message"]) == ("warn", sentence)
