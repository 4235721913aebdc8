"""Automatic runs: they look at what they were told, and let nobody wait."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.index.models import IngestRun, Root, SourceFile
from apps.ingest import services
from apps.ingest.runs import batches, queue
from apps.ingest.runs.submit import queue_update
from tests.support.git import commit_all, git, init
from tests.support.ingested import ingest, run_ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES = {
    "src/app.py": "def app(): ...\n",
    "src/lib/deep.py": "def deep(): ...\n",
    "docs/a.md": "# A\n",
    "node_modules/x/y.py": "def y(): ...\n",
    ".gitignore": "built/\n*.tmp.py\n",
}
NAMES = ("a.py", "b.md", "c.tmp.py", "package-lock.json", "d.bin", "e")
FOLDERS = ("", "src/", "src/lib/", "docs/", "new/", "new/deep/", "built/", "node_modules/x/")


@pytest.fixture(params=["plain", "git"])
def root(folder: Path, request: pytest.FixtureRequest) -> Root:
    write_files(folder, FILES)
    if request.param == "git":
        init(folder)
        commit_all(folder)
    return ingest(folder)


def update(root: Root, *paths: str) -> IngestRun:
    """Execute an automatic run that is told of these paths."""
    root.refresh_from_db()
    run = queue_update(root, paths)
    assert run is not None
    queue.drain()
    return run


def states(root: Root) -> set[tuple[str, str, str]]:
    rows = SourceFile.objects.filter(root=root).live()
    return set(rows.values_list("path", "sha256", "skip_reason"))


def changes(folder: Path, chance: random.Random) -> Iterator[str]:
    """Change some files and folders. Yield what a watcher tells."""
    for _ in range(chance.randint(1, 4)):
        place = chance.choice(FOLDERS)
        path = place + chance.choice(NAMES)
        on_disk = folder / path
        kind = chance.choice(("write", "write", "delete", "move", "drop"))
        if kind == "write" and not on_disk.is_dir():
            content = f"# {chance.random()}\n\0" if path.endswith(".bin") else f"x{chance.random()}"
            write_files(folder, {path: content})
            yield path
            yield from (path[: at + 1] for at, letter in enumerate(path) if letter == "/")
        elif kind == "delete" and on_disk.is_file():
            on_disk.unlink()
            yield path
        elif kind == "move" and on_disk.is_file():
            target = chance.choice(FOLDERS) + chance.choice(NAMES)
            if not (folder / target).is_dir():
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                on_disk.replace(folder / target)
                yield path
                yield from (target[: at + 1] for at, letter in enumerate(target) if letter == "/")
                yield target
        elif kind == "drop" and place and (folder / place).is_dir():
            shutil.rmtree(folder / place)
            yield place


def test_what_it_was_told_is_all_that_a_whole_look_finds(root: Root) -> None:
    chance, folder = random.Random(7), Path(root.path)
    for _ in range(40):
        if told := set(changes(folder, chance)):
            update(root, *sorted(told))
        before = states(root)
        whole = queue_update(Root.objects.get(id=root.id), None)
        assert whole is not None
        queue.drain()
        assert states(root) == before
        counted = Root.objects.get(id=root.id)
        assert counted.files == sum(not reason for _, _, reason in before)
        assert counted.skipped == sum(bool(reason) for _, _, reason in before)


def test_it_overtakes_a_long_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its batches."""
    monkeypatch.setattr(batches, "READ_AT_ONCE", 10)
    monkeypatch.setattr(batches, "ROWS_PER_WRITE", 10)
    small = ingest(write_files(folder / "small", FILES), name="small")
    many = {f"f{number}.py": f"def f{number}(): ...\n" for number in range(100)}
    write_files(folder / "small", {"src/app.py": "def changed(): ...\n"})
    long = services.start_run(
        path=str(write_files(folder / "long", many)), name="long", model=small.model
    )
    claimed = queue.claim()
    assert claimed == long
    short = queue_update(small, ["src/app.py"])
    assert short is not None
    queue.execute(claimed)
    short.refresh_from_db()
    long.refresh_from_db()
    assert (short.state, long.state) == ("completed", "completed")
    assert short.finished_at is not None and long.finished_at is not None
    assert short.finished_at < long.finished_at


def test_after_one_it_is_the_turn_of_what_somebody_asked_for(folder: Path) -> None:
    """Folders that change without end do not hold it up."""
    roots = [
        ingest(write_files(folder / name, FILES), name=name) for name in ("one", "two", "three")
    ]
    asked = services.reembed(roots[2].path)
    for number in range(3):
        for root in roots[:2]:
            write_files(Path(root.path), {"src/app.py": f"def changed_{number}(): ...\n"})
            queue_update(root, ["src/app.py"])
        run = queue.claim()
        assert run is not None
        queue.execute(run)
    asked.refresh_from_db()
    assert asked.state == "skipped"


def test_those_without_a_change_leave_no_row(root: Root) -> None:
    for _ in range(3):
        update(root, "src/app.py")
    write_files(Path(root.path), {"src/app.py": "def two(): ...\n"})
    for _ in range(3):
        update(root, "src/app.py")
    assert IngestRun.objects.filter(automatic=True).count() == 1


def test_it_is_no_run_of_somebody(root: Root) -> None:
    """A start waits for it, and is not refused."""
    assert queue_update(root, ["src/app.py"]) is not None
    run = services.start_run(path=root.path, name=root.name, model=root.model)
    queue.drain()
    run.refresh_from_db()
    assert run.state in ("completed", "skipped")


def test_removing_a_root_ends_it(root: Root) -> None:
    assert queue_update(root, ["src/app.py"]) is not None
    services.remove(root.path)
    queue.drain()
    assert not Root.objects.exists()


def test_the_commit_is_that_of_the_folder(folder: Path) -> None:
    init(folder, "-b", "trunk")
    write_files(folder, FILES)
    commit_all(folder)
    root = ingest(folder)
    assert (root.commit, root.branch) == (git(folder, "rev-parse", "HEAD").strip(), "trunk")
    git(folder, "pack-refs", "--all")
    git(folder, "checkout", "-q", "--detach")
    update(root, "src/app.py")
    root.refresh_from_db()
    assert (root.commit, root.branch) == (git(folder, "rev-parse", "HEAD").strip(), "")


def dirty(folder: Path) -> bool | None:
    """What a look at everything says."""
    run_ingest(folder)
    return Root.objects.get(path=str(folder)).dirty


def test_dirty_is_what_git_status_says(folder: Path) -> None:
    init(folder, "-b", "trunk")
    write_files(folder, FILES)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    assert dirty(folder) is False
    write_files(folder, {"src/app.py": "def bpp(): ...\n"})
    assert dirty(folder) is True
    git(folder, "checkout", "-q", ".")
    assert dirty(folder) is False
    os.utime(folder / "src/app.py", ns=(1, 1))
    assert dirty(folder) is False
    (folder / "src/app.py").write_bytes(b"def app(): ...\r\n")
    assert dirty(folder) is False
    git(folder, "checkout", "-q", "src/app.py")
    write_files(folder, {"src/new.py": "x = 1\n"})
    assert dirty(folder) is True
    git(folder, "add", "src/new.py")
    assert dirty(folder) is True
    git(folder, "commit", "-qm", "y")
    assert dirty(folder) is False
    (folder / "src/new.py").unlink()
    assert dirty(folder) is True


def test_a_change_that_it_was_told_is_dirty(root: Root) -> None:
    update(root, "src/app.py")
    write_files(Path(root.path), {"src/app.py": "def two(): ...\n"})
    update(root, "src/app.py")
    root.refresh_from_db()
    assert root.dirty is (True if root.commit else None)


def test_a_folder_whose_name_differs_only_in_case_stays(folder: Path) -> None:
    root = ingest(write_files(folder, {"docs/a.md": "# A\n", "Docs/b.md": "# B\n"}))
    update(root, "docs/")
    assert {path for path, _, _ in states(root)} == {"docs/a.md", "Docs/b.md"}


def test_runs_whose_files_were_ingested_again_leave_no_row(folder: Path) -> None:
    """However many others came between."""
    names = [f"f{number}.py" for number in range(queue.MAX_FORGOTTEN + 3)]
    root = ingest(write_files(folder, dict.fromkeys(names, "def one(): ...\n")))
    for text in ("two", "three"):
        for name in names:
            write_files(folder, {name: f"def {text}(): ...\n"})
            update(root, name)
    assert IngestRun.objects.filter(automatic=True).count() == len(names)


def test_runs_that_fail_again_and_again_leave_one_row(root: Root) -> None:
    shutil.rmtree(root.path)
    for _ in range(3):
        update(root, "src/app.py")
    (failed,) = IngestRun.objects.filter(automatic=True)
    assert failed.state == "error"


def test_a_commit_that_came_before_a_run_for_some_paths_explains_what_is_gone(
    folder: Path,
) -> None:
    """The files of the other branch are looked at, too: the commit is that of all files."""
    init(folder, "-b", "trunk")
    write_files(folder, FILES | {f"many/f{number}.py": "x = 1\n" for number in range(60)})
    commit_all(folder)
    git(folder, "rm", "-rq", "many")
    git(folder, "commit", "-qm", "Fewer")
    git(folder, "checkout", "-q", "HEAD~1")
    root = ingest(folder)
    git(folder, "checkout", "-q", "trunk")
    assert update(root, "src/app.py").state == "queued"
    root.refresh_from_db()
    assert root.commit == git(folder, "rev-parse", "HEAD").strip()
    assert not [path for path, _, _ in states(root) if path.startswith("many/")]


def test_one_that_was_cancelled_is_known_to_be(root: Root) -> None:
    """What it was told is told again."""
    run = queue_update(root, ["src/app.py"])
    assert queue.claim() == run and run is not None
    services.cancel(run.id, 0)
    queue.execute(run)
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_it_does_not_take_away_what_a_long_run_shares(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worktree is ingested while files of the other one change."""
    monkeypatch.setattr(batches, "READ_AT_ONCE", 10)
    monkeypatch.setattr(batches, "ROWS_PER_WRITE", 10)
    many = {f"f{number}.py": f"def f{number}(): ...\n" for number in range(100)}
    first = ingest(write_files(folder / "first", many), name="first")
    long = services.start_run(
        path=str(write_files(folder / "long", many)), name="long", model=first.model
    )
    assert queue.claim() == long
    write_files(folder / "first", {name: f"{text}# Changed\n" for name, text in many.items()})
    assert queue_update(first, sorted(many)) is not None
    queue.execute(long)
    queue.drain()
    long.refresh_from_db()
    assert (long.state, long.last_error) == ("completed", "")
    roots = Root.objects.all()
    assert {(root.last_state, root.files) for root in roots} == {("completed", 100)}
    assert len({root.store for root in roots}) == 1


def test_the_folder_itself(root: Root) -> None:
    before = states(root)
    write_files(Path(root.path), {"new.py": "def new(): ...\n"})
    update(root, "")
    assert [path for path, _, _ in states(root) - before] == ["new.py"]
    rows = SourceFile.objects.filter(root=root).live()
    assert rows.count() == len(before) + 1
    assert Root.objects.get(id=root.id).files + Root.objects.get(id=root.id).skipped == rows.count()


@pytest.mark.parametrize("name", ["refs/heads/a\0b", "refs/heads/../../../x", "refs/heads//etc/x"])
def test_a_head_that_names_no_file_of_the_repository(folder: Path, name: str) -> None:
    init(folder)
    write_files(folder, FILES)
    commit_all(folder)
    (folder / ".git/HEAD").write_text(f"ref: {name}\n")
    root = ingest(folder)
    assert (root.commit, root.branch, root.last_state) == ("", "", "completed")
