"""Files of codeinfo are for the user who runs it alone; those that others can read become so."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from apps.core.security import private_files
from tests.browser.product import HOME, SERVE, Product, running
from tests.support.served import ingest_into, until_followed
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

NOBODY = 65534
FOR_ALL = ("/bin/sh", "-c", 'umask 022 && exec "$0" "$@"')
LISTING = """
import os, sys
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
for name in ("codeinfo.sqlite3", "codeinfo.sqlite3-wal", "logs/server.log", "secret.key"):
    try:
        print(name, len(open(os.path.join(sys.argv[1], name), "rb").read()))
    except PermissionError:
        pass
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(os.path.realpath(name))


def ingest(product: Product) -> None:
    folder = product.repos / "repo"
    folder.mkdir(exist_ok=True)
    (folder / "a.py").write_text("def area(width, height):\n    return width * height\n")
    known = httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()
    if not known["roots"]:
        ingest_into(product, folder)
    question = {"query": "area of a rectangle"}
    assert httpx.post(f"{product.url}/tools/vector-search", json=question, timeout=PATIENCE).json()[
        "results"
    ]


def exposed_files(folder: Path) -> list[str]:
    """What of a folder is open to its group or to everyone, itself included."""
    found = [folder, *folder.rglob("*")]
    return [str(path) for path in found if path.lstat().st_mode & 0o077 and not path.is_symlink()]


def open_up(folder: Path) -> None:
    """As a copy may leave it."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.fault("Other users of the machine")
def test_the_data_folder_is_private_from_the_start_and_a_copy_becomes_so(
    shared: Path,
) -> None:
    with running(shared / "a", command=(*FOR_ALL, *SERVE), CODEINFO_CHROMA="follow") as product:
        ingest(product)
        until_followed(product)
        assert exposed_files(product.data) == []
        names = {path.name for path in product.data.rglob("*")}
        assert {"codeinfo.sqlite3-wal", "codeinfo.sqlite3-shm", "chroma.sqlite3"} <= names
        assert any((product.data / "index").iterdir())
    open_up(product.data)
    (shared / "b").mkdir()
    product.data.rename(shared / "b" / "data")
    with running(shared / "b", command=(*FOR_ALL, *SERVE)) as product:
        httpx.get(f"{product.url}/conversations", timeout=PATIENCE)
        assert exposed_files(product.data) == []


@pytest.mark.fault("Other users of the machine")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_can_copy_nothing(shared: Path) -> None:
    with running(shared, command=(*FOR_ALL, *SERVE)) as product:
        httpx.get(f"{product.url}/conversations", timeout=PATIENCE)
        command = [sys.executable, "-c", LISTING, str(product.data), str(NOBODY)]
        read = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert read == ""


@pytest.mark.fault("Other users of the machine")
def test_files_elsewhere_are_private_too(shared: Path) -> None:
    database, log = shared / "db" / "code.sqlite3", shared / "log" / "code.log"
    for file in (database, log):
        make(file.parent, file.name, 0o644)
        file.parent.chmod(0o755)
    elsewhere = {"DATABASE_URL": f"sqlite:///{database}", "LOG_FILE_PATH": str(log)}
    with running(shared / "own", command=(*FOR_ALL, *SERVE), **elsewhere) as product:
        httpx.get(f"{product.url}/conversations", timeout=PATIENCE)
        files = [*database.parent.iterdir(), *log.parent.iterdir()]
        assert len(files) >= 4
        assert [str(file) for file in files if file.stat().st_mode & 0o077] == []
    # The folders are not ours.
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "command",
    [
        ("manage.py", "check"),
        ("-c", "import codeinfo.asgi"),
        ("-c", "import django; django.setup()"),
        ("-c", "import codeinfo.celery"),
    ],
    ids=["a command", "ASGI", "Django", "Celery"],
)
def test_every_way_to_start_keeps_new_files_private(shared: Path, command: tuple[str, str]) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "CODEINFO_DATA_DIR": str(shared / "data"),
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CELERY_BROKER_URL": "redis://127.0.0.1:9/0",
        "CHROMA_URL": "127.0.0.1:9",
    }
    start = [*FOR_ALL, sys.executable, *command]
    subprocess.run(start, cwd=HOME, env=env, check=True, capture_output=True)
    assert (shared / "data" / "secret.key").exists()
    assert exposed_files(shared / "data") == []


UMASKS = """
import django
django.setup()
from apps.core.system import programs
sh = ("/bin/sh", "-c", "umask")
print(programs.run(sh, env={}, data=b"", seconds=60, most_bytes=100).stdout.decode())
"""


def test_files_of_other_programs_are_private_too(shared: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "CODEINFO_DATA_DIR": str(shared),
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
    }
    start = ["/bin/sh", "-c", 'umask 0027 && exec "$0" "$@"', sys.executable, "-c", UMASKS]
    done = subprocess.run(start, cwd=HOME, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0077"]


# Repairs


def make(folder: Path, name: str, mode: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.fault("Other users of the machine")
def test_a_repair_follows_no_link_and_leaves_what_is_not_ours(folder: Path) -> None:
    outside = make(folder, "outside/file", 0o644)
    outside.parent.chmod(0o755)
    data = folder / "data"
    inside = make(data, "chroma/index", 0o644)
    mine = make(data, "mine/notes.txt", 0o644)
    (data / "chroma" / "link").symlink_to(outside)
    (data / "index").symlink_to(outside.parent)
    os.mkfifo(data / "logs")
    (data / "logs").chmod(0o644)
    assert private_files.repair(data, []) == []
    assert (mode_of(data), mode_of(inside), mode_of(inside.parent)) == (0o700, 0o600, 0o700)
    assert (mode_of(outside), mode_of(outside.parent)) == (0o644, 0o755)
    # Nobody can get there any more; it is for its owner to say.
    assert mode_of(mine) == 0o644


@pytest.mark.fault("Other users of the machine")
def test_what_belongs_to_another_user_is_told_and_left(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    data = folder / "data"
    foreign = make(data, "chroma/index", 0o644)
    os.chown(foreign, NOBODY, NOBODY)
    (exposed,) = private_files.repair(data, [])
    assert (exposed.path, exposed.reason) == (foreign, "it belongs to another user")
    assert mode_of(foreign) == 0o644
    assert [each.path for each in private_files.exposed_files(data, [])] == [foreign]


def test_a_folder_that_all_users_share_is_left_as_it_is(folder: Path) -> None:
    data = folder / "data"
    make(data, "chroma/index", 0o644)
    data.chmod(0o1777)
    (exposed,) = private_files.repair(data, [])
    assert (exposed.path, mode_of(data)) == (data, 0o1777)


def test_a_repair_ends_in_a_folder_that_is_very_deep_or_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_files, "MAX_ENTRIES", 10)
    data = folder / "data"
    files = [make(data, f"chroma/{n}", 0o644) for n in range(30)]
    make(data, "index/" + "d/" * 200 + "file", 0o644)
    private_files.repair(data, [])
    assert mode_of(data) == 0o700
    assert sum(mode_of(file) == 0o600 for file in files) <= 10


def test_there_may_be_nothing_to_repair_yet(folder: Path) -> None:
    assert private_files.repair(folder / "none", [folder / "none.log"]) == []
