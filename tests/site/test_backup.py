"""A backup of a running server, and its restore to another folder."""

import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from apps.core.config import config
from apps.core.errors import Conflict, InvalidInput, Unavailable
from apps.core.system import posix
from apps.index import freeze
from apps.index.models import Root
from apps.index.types import never_cancelled
from apps.ingest import bases
from apps.ingest.runs.job import RunCancelled
from apps.site.backup import archive, copying, making, manifest, restoring
from apps.site.backup.making import make
from tests.browser.product import Product, running
from tests.site.commands import manage_data
from tests.stand_ins.embeddings_server import EmbeddingsServer
from tests.support.changing import Other, other_process
from tests.support.ingested import SAMPLE, ingest_sample, write_files
from tests.support.served import ended, ingest_into, start_ingest, until
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

MODEL = "openai:text-embedding-small"


class Stalled:
    """Lets an embedding server answer until it has been sent so many texts, then holds it."""

    def __init__(self, server: EmbeddingsServer) -> None:
        self._server = server
        self._most = 1_000_000
        self.reached, self.release = threading.Event(), threading.Event()
        server.before_answer = self

    def after(self, more: int) -> None:
        self._most = self._sent() + more

    def __call__(self) -> None:
        if self._sent() > self._most:
            self.reached.set()
            self.release.wait(300)

    def _sent(self) -> int:
        return sum(map(len, self._server.texts()))


def search(product: Product, text: str) -> list[str]:
    body = {"query": text, "limit": 5}
    answer = httpx.post(f"{product.url}/tools/vector-search", json=body, timeout=60)
    assert answer.is_success, answer.text
    return [each["relPath"] for each in answer.json()["results"]]


@pytest.mark.fault("A backup is made or stopped")
def test_a_backup_taken_during_an_ingest_is_restored_verified_and_searched(
    tmp_path: Path,
) -> None:
    packed, copy = tmp_path / "kept" / "codeinfo.tar.gz", tmp_path / "second"
    packed.parent.mkdir()
    with EmbeddingsServer() as server:
        environ = {
            "CODEINFO_EMBEDDING_BASE_URL": server.url,
            "CODEINFO_EMBEDDING_BATCH": "200",
            "CODEINFO_EMBEDDING_CACHE_MB": "0",
            "INGEST_FLUSH_EVERY": "1",
        }
        stalled = Stalled(server)
        with running(tmp_path / "first", **environ) as product:
            repo = write_files(product.repos / "lighthouse", SAMPLE)
            ingest_into(product, repo, model=MODEL)
            many = {f"many/m{n}.py": f"def m{n}() -> int:\n    return {n}\n" for n in range(1_500)}
            write_files(repo, many | {"README.md": "# Another\n\nAll of it is new.\n"})
            stalled.after(1_100)
            run = start_ingest(product, repo, model=MODEL)
            assert stalled.reached.wait(300)
            done = manage_data(product.data, "backup", str(packed))
            assert done.returncode == 0, done.stderr
            # The run was under way all the time, and goes on.
            status = httpx.get(f"{product.url}/ingest/status/{run}", timeout=PATIENCE).json()
            assert status["state"] == "embedding"
            stalled.release.set()
            assert until(product, run, ended)["state"] == "completed"
            assert stat.S_IMODE(packed.stat().st_mode) == 0o600
            assert [path.name for path in packed.parent.iterdir()] == [packed.name]
        done = manage_data(copy / "data", "restore", str(packed))
        assert done.returncode == 0, done.stderr
        assert "Restored the backup" in done.stdout
        assert "0 differences in 1 root." in done.stdout
        assert not (copy / "data" / "chroma").exists()
        # As it was published: the run that was cut off does not count.
        done = manage_data(copy / "data", "verify_index", "--json")
        assert done.returncode == 0, done.stdout
        (root,) = json.loads(done.stdout)["roots"]
        assert root["rows"] == 4 and root["indexed"] == root["chunks"] > 0
        with running(copy, **environ) as restored:
            assert "src/retry.py" in search(restored, "seconds to wait before an attempt")
            status = httpx.get(f"{restored.url}/ingest/status/{run}", timeout=PATIENCE).json()
            assert status["state"] in ("cancelled", "error"), status
            done = manage_data(restored.data, "verify_index")
            assert done.returncode == 0, done.stdout
        assert (copy / "data" / "secret.key").read_text() == (
            tmp_path / "first" / "data" / "secret.key"
        ).read_text()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A server that has ingested the sample repository."""
    with running(tmp_path_factory.mktemp("served")) as product:
        ingest_into(product, write_files(product.repos / "lighthouse", SAMPLE))
        yield product


@pytest.fixture(scope="module")
def backup_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A backup of a small index, made without a server; `data` beside it is where it came from."""
    folder = tmp_path_factory.mktemp("backup")
    with running(folder) as product:
        ingest_into(product, write_files(product.repos / "lighthouse", SAMPLE))
    write_files(product.data, {bases.NAME: '{"bases": ["/srv/code"]}'})
    packed = folder / "packed" / "codeinfo.tar.gz"
    packed.parent.mkdir()
    done = manage_data(product.data, "backup", str(packed))
    assert done.returncode == 0, done.stderr
    yield packed


def refused(done: Any, *words: str) -> None:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def restore(file: Path, data: Path) -> None:
    """As the command does in its process."""
    restoring.restore(file, data, check=never_cancelled, report=lambda message: None)


def back_up(file: Path, *, force: bool = False) -> None:
    make(file, force=force, check=never_cancelled, report=lambda message: None)


def test_a_backup_is_made_without_a_server_and_restored(backup_file: Path, tmp_path: Path) -> None:
    # What commands leave that looked for the stores, or for a server, there.
    locks = (*freeze.NAMES, "server.lock", "server.start", "server.users")
    write_files(tmp_path / "new", dict.fromkeys(("data.lock", *locks), ""))
    done = manage_data(tmp_path, "restore", str(backup_file), "--data-dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "new").iterdir() if path.name != "logs"} == {
        "codeinfo.sqlite3",
        "data.lock",
        "index",
        "ingest-bases.json",
        "secret.key",
        *locks,
        "texts",
    }
    assert "/srv/code" in (tmp_path / "new" / bases.NAME).read_text()
    assert manage_data(tmp_path / "new", "verify_index").returncode == 0


def break_database(chroma: Path) -> None:
    write_files(chroma, {"chroma.sqlite3": b"no database" * 1_000})


def delete(chroma: Path) -> None:
    shutil.rmtree(chroma, ignore_errors=True)


@pytest.mark.fault("A backup is made or stopped")
@pytest.mark.parametrize(
    ("harm", "variables"),
    [
        (break_database, {}),
        (delete, {}),
        (delete, {"CHROMA_URL": "127.0.0.1:1"}),
    ],
    ids=["broken", "deleted", "a server that is away"],
)
def test_a_backup_does_not_notice_what_has_become_of_chroma(
    backup_file: Path,
    tmp_path: Path,
    harm: Callable[[Path], None],
    variables: dict[str, str],
) -> None:
    data, packed, copy = tmp_path / "data", tmp_path / "x.tar.gz", tmp_path / "copy"
    shutil.copytree(backup_file.parent.parent / "data", data, ignore=_without_log)
    harm(data / "chroma")
    done = manage_data(data, "backup", str(packed), **variables)
    assert done.returncode == 0, done.stderr
    done = manage_data(copy / "data", "restore", str(packed), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    with running(copy, **variables) as restored:
        assert "src/retry.py" in search(restored, "seconds to wait before an attempt")


def test_a_backup_has_the_database_the_index_and_nothing_that_follows_from_them(
    backup_file: Path,
) -> None:
    data = backup_file.parent.parent / "data"
    with tarfile.open(backup_file) as tar:
        sizes = {member.name: member.size for member in tar}
    parts = {f"index/{path.name}" for path in (data / "index").iterdir()}
    texts = {f"texts/{path.name}" for path in (data / "texts").glob("*.zst")}
    single = {"manifest.json", manifest.DATABASE, manifest.SECRET, bases.NAME}
    assert set(sizes) == parts | texts | single | {"texts/index.sqlite3"} and parts and texts
    assert all(sizes[name] == (data / name).stat().st_size for name in parts | texts)


def packed_with(target: Path, content: dict[str, bytes], **values: Any) -> Path:
    """An archive of these members whose manifest is right but for `values`."""
    listed = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in content.items()
    }
    made = manifest.Manifest("now", {}, [])
    manifest_values = json.loads(made.as_bytes()) | {"members": listed} | values
    with tarfile.open(target, "w:gz") as tar:
        for name, data in {
            "manifest.json": json.dumps(manifest_values).encode(),
            **content,
        }.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return target


DATABASE = {manifest.DATABASE: b"no database"}


@pytest.mark.fault("A restore is refused or killed")
def test_of_two_restores_to_a_folder_one_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    packed, data = packed_with(tmp_path / "x.tar.gz", DATABASE), tmp_path / "data"
    there: list[bool] = []

    def second(message: str) -> None:
        if message.startswith("bringing"):
            with pytest.raises(Conflict, match="another restore"):
                restore(packed, data)
            there.append((data / restoring.UNFINISHED / manifest.DATABASE).exists())
            raise RunCancelled

    with pytest.raises(RunCancelled):
        restoring.restore(packed, data, check=never_cancelled, report=second)
    assert there == [True]


@pytest.mark.fault("A restore is refused or killed")
@pytest.mark.parametrize(
    "values",
    [
        {"members": {manifest.DATABASE: {"size": 1e400, "sha256": ""}}},
        {"format": "2"},
        {"migrations": [1]},
        {"migrations": [["a", "b", "c"]]},
    ],
)
def test_a_manifest_of_other_kinds_of_values_is_refused(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    packed = packed_with(tmp_path / "x.tar.gz", DATABASE, **values)
    with pytest.raises(InvalidInput, match="manifest cannot be read"), archive.reading(packed):
        pass


@pytest.mark.fault("A restore is refused or killed")
def test_a_manifest_writes_nothing_but_text_to_the_terminal(tmp_path: Path) -> None:
    migrations = [["x\x1b[2J", "y\n" * 5_000]]
    packed = packed_with(tmp_path / "x.tar.gz", DATABASE, migrations=migrations)
    done = manage_data(tmp_path / "own", "restore", str(packed))
    refused(done, "\\u001b[2J")
    assert len(done.stderr.splitlines()) == 1 and len(done.stderr) < 10_000


@pytest.mark.fault("A restore is refused or killed")
@pytest.mark.parametrize("header", [b"29 GNU.sparse.map=not numbers\n", b"13 size=-512\n"])
def test_a_header_of_nonsense_is_refused(tmp_path: Path, header: bytes) -> None:
    entry = tarfile.TarInfo("pax")
    entry.type, entry.size = tarfile.XHDTYPE, len(header)
    head = entry.tobuf(tarfile.GNU_FORMAT) + header.ljust(512, b"\0")
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(gzip.compress(head + tarfile.TarInfo("manifest.json").tobuf()))
    with pytest.raises(InvalidInput, match="not a valid backup"), archive.reading(bad):
        pass


@pytest.mark.fault("A restore is refused or killed")
@pytest.mark.parametrize(
    "name", ["codeinfo.sqlite3", "codeinfo.sqlite3-wal", "secret.key", "index/x.tar.gz"]
)
def test_a_backup_is_never_written_over_what_it_is_of(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_files(tmp_path / "data", {name: "mine"})
    monkeypatch.setattr(making, "config", lambda: SimpleNamespace(data_dir=data))
    monkeypatch.setattr(copying, "database_path", lambda: data / "codeinfo.sqlite3")
    with pytest.raises(InvalidInput, match="codeinfo's own data"):
        back_up(data / name, force=True)
    assert (data / name).read_text() == "mine"


def test_a_folder_that_cannot_be_locked_takes_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: int) -> None:
        raise OSError(errno.EBADF, "as NFS says of a folder")

    monkeypatch.setattr(posix, "lock", refuse)
    with making.partial_folder(tmp_path / "x.tar.gz") as folder:
        assert folder.is_dir()


def test_an_existing_file_is_replaced_only_by_force(backup_file: Path, tmp_path: Path) -> None:
    data = backup_file.parent.parent / "data"
    there = tmp_path / "there.tar.gz"
    there.write_text("mine")
    refused(manage_data(data, "backup", str(there)), "--force")
    assert there.read_text() == "mine"
    assert manage_data(data, "backup", str(there), "--force").returncode == 0
    with archive.reading(there) as opened:
        assert manifest.DATABASE in opened.manifest.members
    link = tmp_path / "link.tar.gz"
    link.symlink_to(there)
    for target, message in (
        (link, "is a link"),
        (tmp_path / "none" / "x.tar.gz", "There is no folder"),
        (tmp_path, "is not a file"),
    ):
        with pytest.raises(InvalidInput, match=message):
            back_up(target, force=True)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_that_is_not_in_the_folder_is_left_to_its_own_means(
    tmp_path: Path, command: str
) -> None:
    file, address = tmp_path / "new.tar.gz", "postgres://codeinfo@127.0.0.1:1/codeinfo"
    done = manage_data(tmp_path / "data", command, str(file), DATABASE_URL=address)
    refused(done, "pg_dump", "index/ and texts/")
    assert "Chroma" not in done.stderr
    assert not file.exists()


@pytest.mark.fault("A restore is refused or killed")
def test_a_folder_that_holds_data_is_refused(backup_file: Path, tmp_path: Path) -> None:
    data = backup_file.parent.parent / "data"
    refused(
        manage_data(data, "restore", str(backup_file)), "holds data already", "codeinfo.sqlite3"
    )
    strange = write_files(tmp_path / "strange", {"letter.txt": "mine"})
    with pytest.raises(Conflict, match="letter.txt"):
        restore(backup_file, strange)
    assert (strange / "letter.txt").read_text() == "mine"


@pytest.mark.fault("A restore is refused or killed")
def test_a_folder_whose_server_runs_is_refused(backup_file: Path, served: Product) -> None:
    refused(manage_data(served.data, "restore", str(backup_file)), "A codeinfo runs on")


def changed(backup_file: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """An archive with other members."""
    with tarfile.open(backup_file, "r:gz") as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}  # type: ignore[union-attr]
    change(members)
    with tarfile.open(target, "w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return target


def in_manifest(**values: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        found = json.loads(members["manifest.json"]) | values
        members["manifest.json"] = json.dumps(found).encode()

    return change


def flip(members: dict[str, bytes]) -> None:
    name = next(name for name in members if name.startswith("index/"))
    members[name] = bytes([members[name][0] ^ 1]) + members[name][1:]


def lose(members: dict[str, bytes]) -> None:
    del members[max(members)]


def add(members: dict[str, bytes]) -> None:
    members["index/../../evil.txt"] = b"evil"


def list_evil(members: dict[str, bytes]) -> None:
    found = json.loads(members["manifest.json"])
    found["members"]["../evil.txt"] = {"size": 4, "sha256": "0" * 64}
    members["manifest.json"] = json.dumps(found).encode()
    members["../evil.txt"] = b"evil"


def no_manifest(members: dict[str, bytes]) -> None:
    del members["manifest.json"]


@pytest.mark.fault("A restore is refused or killed")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (flip, "has been changed"),
        (lose, "is missing"),
        (add, "is not what its manifest says"),
        (list_evil, "which no backup has"),
        (no_manifest, "does not begin with a manifest"),
        (in_manifest(format=3), "newer"),
        (in_manifest(format=1), "before the first release"),
        (in_manifest(version="99.0"), "its version is 99.0"),
        (in_manifest(migrations=[["index", "0099_later"]]), "index.0099_later"),
        (in_manifest(migrations=[["ingest", "0001_initial"]]), "before the first release"),
        (in_manifest(members=[]), "manifest cannot be read"),
    ],
)
def test_an_archive_that_is_broken_or_of_another_version_is_refused_and_nothing_is_left(
    backup_file: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], word: str
) -> None:
    bad = changed(backup_file, tmp_path / "bad.tar.gz", change)
    new = tmp_path / "new" / "data"
    with pytest.raises(InvalidInput, match=word):
        restore(bad, new)
    assert not new.exists()
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.fault("A restore is refused or killed")
@pytest.mark.door
def test_a_refused_restore_leaves_nothing_in_the_data_folder_of_its_command(
    backup_file: Path, tmp_path: Path
) -> None:
    no_archive = tmp_path / "no.tar.gz"
    no_archive.write_text("no archive")
    bad = changed(backup_file, tmp_path / "bad.tar.gz", flip)
    for file in (tmp_path / "none", no_archive, bad):
        refused(manage_data(tmp_path / "new", "restore", str(file)))
        assert not (tmp_path / "new").exists()
    key = write_files(tmp_path / "kept", {"secret.key": "k" * 64}) / "secret.key"
    refused(manage_data(key.parent, "restore", str(bad)))
    assert list(key.parent.iterdir()) == [key]


def test_a_file_that_is_no_archive_is_refused(backup_file: Path, tmp_path: Path) -> None:
    whole = backup_file.read_bytes()
    for data in (b"", b"no archive", gzip.compress(b"x" * 2_000), whole[: len(whole) // 2]):
        bad = tmp_path / "bad.tar.gz"
        bad.write_bytes(data)
        with pytest.raises(InvalidInput), archive.reading(bad) as opened:
            opened.extract(tmp_path, lambda: None)
        for name in ("index", "texts"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        for path in tmp_path.glob("codeinfo*"):
            path.unlink()
    refused(manage_data(tmp_path / "own", "restore", str(tmp_path / "none")), "There is no file")


def test_a_link_in_an_archive_is_refused(backup_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tar.gz"
    with tarfile.open(backup_file, "r:gz") as tar, tarfile.open(bad, "w:gz") as other:
        for member in tar.getmembers():
            if member.name == manifest.DATABASE:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            content = tar.extractfile(member) if member.isreg() else None
            other.addfile(member, content)
    with (
        pytest.raises(InvalidInput, match="not what its manifest says"),
        archive.reading(bad) as opened,
    ):
        opened.extract(tmp_path, lambda: None)


@pytest.mark.fault("A restore is refused or killed")
def test_a_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("manifest.json")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 34
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(gzip.compress(entry.tobuf(tarfile.GNU_FORMAT) + b"x" * (1 << 20)))
    with pytest.raises(InvalidInput, match="memory"), archive.reading(bad):
        pass


@pytest.mark.fault("A restore is refused or killed")
def test_a_restore_that_was_killed_begins_again_and_no_server_starts_on_it(
    backup_file: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    (data / "restore.unfinished").mkdir(parents=True)
    write_files(data, {"index/x.part": "half", "restore.unfinished/x": "y"})
    refused(manage_data(data, "serve"), "restore", "was interrupted")
    # It verifies what it has restored.
    assert manage_data(data, "restore", str(backup_file)).returncode == 0


@pytest.mark.fault("The database is copied without its log")
def test_a_copy_without_its_log_is_named(served: Product, tmp_path: Path) -> None:
    # As if the log had all that is committed from here on.
    with (
        closing(sqlite3.connect(served.data / "codeinfo.sqlite3")) as database,
        closing(sqlite3.connect(tmp_path / "without_log")) as without_log,
    ):
        database.backup(without_log)
    repo = write_files(
        served.repos / "lighthouse", {"src/new.py": "def fresh() -> int:\n    return 1\n"}
    )
    ingest_into(served, repo)
    copy = tmp_path / "copy" / "data"
    shutil.copytree(served.data, copy, ignore=_without_log)
    shutil.copyfile(tmp_path / "without_log", copy / "codeinfo.sqlite3")
    done = manage_data(copy, "doctor")
    assert done.returncode == 1
    assert "does not have 1 run that wrote to the index of" in done.stdout
    assert "codeinfo.sqlite3-wal" in done.stdout
    done = manage_data(served.data, "doctor")
    assert "The database has all runs" in done.stdout


def _without_log(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if name.startswith("codeinfo.sqlite3-") or (Path(folder) / name).is_socket()
    ]


@pytest.mark.fault("A backup is made or stopped")
def test_a_disk_without_the_space_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "free_bytes", lambda folder: 1_000)
    with pytest.raises(Unavailable, match="too little space") as refused:
        make(tmp_path / "x.tar.gz", force=False, check=never_cancelled, report=lambda message: None)
    assert refused.value.code == "DISK_FULL"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("A backup is made or stopped")
@pytest.mark.django_db(transaction=True)
def test_a_backup_that_is_stopped_leaves_nothing_and_those_that_were_killed_are_cleared(
    tmp_path: Path,
) -> None:
    write_files(tmp_path, {".x.tar.gz.killed.partial/copy/codeinfo.sqlite3": "half"})
    times: list[int] = []

    def stop() -> None:
        times.append(1)
        if len(times) > 1:
            raise RunCancelled

    with pytest.raises(RunCancelled):
        make(tmp_path / "x.tar.gz", force=False, check=stop, report=lambda message: None)
    assert list(tmp_path.iterdir()) == []
    with freeze.changing(wait=False):
        pass


def steps(file: Path, *, at: str, do: Callable[[], object]) -> None:
    """Make a backup, and do something once, when it reports a step."""
    waiting = [do]

    def report(message: str) -> None:
        if message.startswith(at) and waiting:
            waiting.pop()()

    make(file, force=False, check=never_cancelled, report=report)


def published(file: Path, folder: Path) -> tuple[set[str], set[str]]:
    """The parts that the database of a backup lists, and those that it has."""
    with archive.reading(file) as opened:
        opened.extract(folder, never_cancelled)
    with closing(sqlite3.connect(folder / manifest.DATABASE)) as database:
        lists = database.execute(f"SELECT parts FROM {Root._meta.db_table}").fetchall()
    names = {entry["name"] for (parts,) in lists for entry in json.loads(parts)}
    return names, {path.stem for path in (folder / "index").iterdir()}


@pytest.mark.fault("A backup is made or stopped")
@pytest.mark.django_db(transaction=True)
def test_what_another_process_would_publish_waits_until_the_backup_has_its_parts(
    folder: Path,
) -> None:
    ingest_sample(folder / "lighthouse")
    said: list[str] = []
    with ExitStack() as beside:

        def publish() -> None:
            others.append(beside.enter_context(other_process()))
            said.append(others[0].says())

        others: list[Other] = []
        steps(folder / "x.tar.gz", at="copying the database", do=publish)
        assert [*said, others[0].says()] == ["BUSY", "changing"]
    (folder / "kept").mkdir()
    listed, copied = published(folder / "x.tar.gz", folder / "kept")
    assert listed == copied


@pytest.mark.django_db(transaction=True)
def test_parts_are_not_copied_beside_the_data_unless_the_disk_cannot_link_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = {each["name"] for each in ingest_sample(folder / "lighthouse").parts}
    (made,) = config().data_dir.glob(f"index/{part}.*")
    names: list[int] = []

    def count() -> None:
        names.append(made.stat().st_nlink)

    def refuse(*args: Path) -> None:
        raise OSError(errno.EPERM, "as FAT says")

    (folder / "kept").mkdir()
    steps(folder / "linked.tar.gz", at="writing the archive", do=count)
    monkeypatch.setattr(os, "link", refuse)
    steps(folder / "copied.tar.gz", at="writing the archive", do=count)
    assert names == [2, 1] and made.stat().st_nlink == 1
    assert published(folder / "copied.tar.gz", folder / "kept") == ({part}, {part})
