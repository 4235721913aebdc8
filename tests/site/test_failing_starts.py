"""Starts that fail: `serve` says in one sentence what is wrong and what to do, `doctor` agrees."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.browser.product import running
from tests.site.commands import env_of, manage
from tests.support.small_disk import small_disk
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

NOBODY = 65534
OPEN = "WARN others may read"


@dataclass(frozen=True)
class Refusal:
    """sentence: with which a start is refused. broken: what `doctor` finds broken, by id; nothing
    if it cannot start either, and says the same."""

    sentence: str
    broken: dict[str, str]


def refused(env: dict[str, str], *, user: bool = False) -> Refusal:
    done = manage(env, "serve", user=user)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith(OPEN)]
    assert len(lines) == 1, lines
    doctor = manage(env, "doctor", "--json", user=user)
    assert doctor.returncode == 1, doctor.stdout
    assert "Traceback" not in doctor.stderr
    checks = json.loads(doctor.stdout)["checks"] if doctor.stdout else []
    broken = {check["id"]: check["detail"] for check in checks if check["level"] == "bad"}
    assert broken or doctor.stderr == done.stderr, doctor.stdout + doctor.stderr
    return Refusal(lines[0], broken)


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
    refusal = refused(env)
    assert str(data / "codeinfo.sqlite3") in refusal.sentence
    assert "damaged" in refusal.sentence and "backup" in refusal.sentence
    assert "damaged" in refusal.broken["database"]


@pytest.mark.fault("A start that cannot succeed")
def test_a_folder_in_the_place_of_the_database(data: Path) -> None:
    (data / "codeinfo.sqlite3").unlink()
    (data / "codeinfo.sqlite3").mkdir()
    refusal = refused(env_of(data))
    assert f"{data / 'codeinfo.sqlite3'} is a folder" in refusal.sentence
    assert "is a folder" in refusal.broken["database"]


@pytest.mark.fault("A start that cannot succeed")
def test_a_database_of_a_newer_version(data: Path) -> None:
    with closing(sqlite3.connect(data / "codeinfo.sqlite3")) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, ?)",
            ("index", "0999_the_future", "2030-01-01"),
        )
        database.commit()
    env = env_of(data)
    refusal = refused(env)
    message = refusal.sentence
    assert "made by a newer codeinfo" in message and "index.0999_the_future" in message
    assert "backup" in message
    assert "made by a newer codeinfo" in refusal.broken["schema"]
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


def unreleased(database: Path) -> None:
    with closing(sqlite3.connect(database)) as old:
        old.executescript(UNRELEASED)


@pytest.mark.fault("A start that cannot succeed")
def test_data_from_before_the_first_release_is_set_aside_with_its_conversations(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    (data / "chroma").mkdir(parents=True)
    (data / "chroma" / "chroma.sqlite3").write_text("vectors")
    (data / "ingest-bases.json").write_text("[]")
    unreleased(data / "codeinfo.sqlite3")
    env = env_of(data)
    refusal = refused(env)
    assert "before the first release" in refusal.sentence
    assert "manage.py set_aside" in refusal.sentence
    assert "before the first release" in refusal.broken["schema"]
    assert "manage.py set_aside" in manage(env, "migrate").stderr

    done = manage(env, "set_aside")
    assert (done.returncode, done.stderr) == (0, "")
    [aside] = data.glob("set-aside-*")
    assert f"exported 1 conversation to {aside / 'conversations'}" in done.stdout
    [talk] = (aside / "conversations").iterdir()
    assert talk.read_text() == "# Who rotates?\n\n## Who rotates?\n\nThe lamp.\n\n"
    assert (aside / "chroma" / "chroma.sqlite3").read_text() == "vectors"
    assert (aside / "codeinfo.sqlite3").exists()
    assert {path.name for path in data.iterdir()} == {aside.name, "data.lock", "ingest-bases.json"}

    with running(tmp_path) as product:
        assert httpx.get(f"{product.url}/conversations", timeout=PATIENCE).json() == {"items": []}
        assert httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"] == []
    done = manage(env, "set_aside")
    assert done.returncode == 1 and "nothing to set aside" in done.stderr
    assert list(data.glob("set-aside-*")) == [aside]


@pytest.mark.fault("A start that cannot succeed")
def test_a_database_elsewhere_from_before_the_first_release_is_set_aside_too(
    tmp_path: Path,
) -> None:
    data, database = tmp_path / "data", tmp_path / "elsewhere.sqlite3"
    data.mkdir()
    unreleased(database)
    env = env_of(data, DATABASE_URL=f"sqlite:///{database}")
    assert "manage.py set_aside" in manage(env, "serve").stderr
    assert manage(env, "set_aside").returncode == 0
    [aside] = data.glob("set-aside-*")
    assert len(list((aside / "conversations").iterdir())) == 1
    assert (aside / database.name).exists() and not database.exists()


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
    message = refused(env_of(tmp_path / "data")).sentence
    assert f"{tmp_path / 'data'} is a file" in message and "CODEINFO_DATA_DIR" in message


@pytest.mark.fault("A start that cannot succeed")
def test_a_folder_in_the_place_of_the_lock(data: Path) -> None:
    (data / "data.lock").mkdir()
    refusal = refused(env_of(data))
    assert f"{data} cannot be locked (Is a directory)" in refusal.sentence
    assert "cannot be locked" in refusal.broken["data"]


@pytest.mark.fault("A start that cannot succeed")
@pytest.mark.parametrize("content", ["", "short", "\n \n"])
def test_a_secret_key_that_is_empty_or_cut_off(data: Path, content: str) -> None:
    (data / "secret.key").write_text(content)
    message = refused(env_of(data)).sentence
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
    message = refused(env_of(data, DATABASE_URL=url)).sentence
    assert words in message and "DATABASE_URL" in message
    assert "canary" not in message


@pytest.mark.fault("A start that cannot succeed")
def test_a_disk_that_is_read_only(made: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 20) as disk:
        for file in made.glob("*.*"):
            (disk / file.name).write_bytes(file.read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        refusal = refused(env_of(disk))
        assert f"{disk} cannot be written" in refusal.sentence
        assert "Read-only file system" in refusal.sentence
        assert "cannot be written" in refusal.broken["data"]
        # Nothing was ever there: not even the key can be made.
        assert "cannot be written" in refused(env_of(disk / "new")).sentence


@pytest.mark.fault("A start that cannot succeed")
def test_files_of_another_user(data: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    secret, database = data / "secret.key", data / "codeinfo.sqlite3"
    os.chown(secret, NOBODY, NOBODY)
    secret.chmod(0o600)
    assert f"{secret} cannot be read" in refused(env_of(data), user=True).sentence
    os.chown(secret, 0, 0)

    os.chown(database, NOBODY, NOBODY)
    database.chmod(0o600)
    message = refused(env_of(data), user=True).sentence
    assert f"{database} cannot be" in message
    os.chown(database, 0, 0)

    os.chown(data, NOBODY, NOBODY)
    data.chmod(0o755)  # which is told, too
    message = refused(env_of(data), user=True).sentence
    assert f"{data} cannot be written" in message and "Permission denied" in message
    assert "cannot be written" in manage(env_of(data / "sub" / "data"), "serve", user=True).stderr


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


def test_wrong_settings_of_retrieval_warn_and_do_not_stop_the_start(tmp_path: Path) -> None:
    wrong = {
        "CODEINFO_RETRIEVAL_DISTANCE_CUTOFF": ("near", "1.4"),
        "CODEINFO_RETRIEVAL_CUTOFF_DISABLED": ("maybe", "False"),
    }
    env = env_of(tmp_path / "data", **{name: value for name, (value, _) in wrong.items()})
    done = manage(env, "check")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "data/logs/server.log").read_text().splitlines()
    logged = {(entry["level"], entry["message"]) for entry in map(json.loads, lines)}
    for name, (value, default) in wrong.items():
        sentence = f"{name} cannot be {value!r}: the default, {default}, is used"
        assert sentence in done.stderr
        assert ("warn", sentence) in logged
