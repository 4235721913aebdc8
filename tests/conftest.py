"""What every test stands on: a data folder of its own, and settings that can be turned."""

import gc
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.signals import request_started
from django.db import close_old_connections

from apps.index import changes
from apps.index.grams import reset_grams
from apps.index.texts import reset_texts
from tests.settings import FOLDER, WORKER
from tests.support import flushing, mongodb, writes

TESTS = Path(__file__).parent

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Two workers in one folder would be two processes on one store."""
    assert os.environ.get("PYTEST_XDIST_WORKER", "main") == WORKER
    assert settings.DATA_DIR == FOLDER
    # A background job ignores Ctrl-C, and so would every program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    flushing.remember_what_migrations_write()
    writes.refuse_crossing_writes()
    mongodb.undo_each_test()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, None, None]:
    """What is imported and collected stays to the end: nobody need look for what to throw away."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Every test is one of these. Whoever works runs the unit tests (`make test-unit`): they need no
# other process, no network and no browser. On servers (`python -m tests.stores`) none is one.
KINDS = ("unit", "door", "browser", "kill")
ON_SERVERS = bool(os.environ.get("TEST_REDIS_URL"))
OUTSIDE = frozenset(("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"))


class NotAUnitTest(Exception):
    """A unit test started a process or opened a socket."""


_unit_test = ""


def _forbid_outside(event: str, args: tuple[Any, ...]) -> None:
    network = event in ("socket.bind", "socket.connect") and isinstance(args[1], tuple)
    if _unit_test and (network or event in OUTSIDE):
        raise NotAUnitTest(f"{event} in {_unit_test}: mark it with one of {KINDS[1:]}")


sys.addaudithook(_forbid_outside)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global _unit_test
    _unit_test = item.nodeid if item.get_closest_marker("unit") else ""
    try:
        return (yield)
    finally:
        _unit_test = ""


# Whole installations that are started, damaged, killed, filled and restored, hostile inputs, and
# each page in each state: `make test-long`. A test belongs here if one waits for it, and changes
# elsewhere hardly break it.
LONG = frozenset(
    TESTS / name
    for name in (
        "damage",
        "kept",
        "power",
        "recipes",
        "soak",
        "browser/test_drawn.py",
        "browser/test_gallery.py",
        "cli/test_bridge.py",
        "cli/test_faults.py",
        "cli/test_hostile_folders.py",
        "cli/test_ingest_url.py",
        "cli/test_ingest_verb.py",
        "cli/test_server.py",
        "cli/test_server_verbs.py",
        "cli/test_stdio_clients.py",
        "cli/test_wheel.py",
        "cli/test_wheel_entries.py",
        "cli/test_workspace.py",
        "cli/test_written_configurations.py",
        "conversations/test_hostile_answers.py",
        "core/test_fuzz.py",
        "core/test_local_users.py",
        "core/test_schemathesis.py",
        "house/test_patterns.py",
        "house/test_posix.py",
        "index/test_chunk_process.py",
        "index/test_following.py",
        "index/test_following_faults.py",
        "ingest/remote/test_hooks.py",
        "ingest/remote/test_hostile_servers.py",
        "ingest/test_disk_full.py",
        "ingest/test_interleaved.py",
        "ingest/test_kills.py",
        "ingest/test_recovery.py",
        "ingest/test_sharing.py",
        "ingest/test_watching.py",
        "retrieval/test_search_processes.py",
        "site/test_backup.py",
        "site/test_chroma_follows.py",
        "site/test_closed_folders.py",
        "site/test_compose.py",
        "site/test_computed_work.py",
        "site/test_damaged_database.py",
        "site/test_damaged_folders.py",
        "site/test_database_alone.py",
        "site/test_database_locks.py",
        "site/test_descriptors.py",
        "site/test_failing_starts.py",
        "site/test_folder_names.py",
        "site/test_hostile.py",
        "site/test_memory_of_readers.py",
        "site/test_misplaced.py",
        "site/test_one_process.py",
        "site/test_open_files.py",
        "site/test_overwritten_files.py",
        "site/test_private_files.py",
        "site/test_secrets.py",
        "site/test_serve.py",
        "site/test_shortened_files.py",
        "site/test_stopped_search_process.py",
        "site/test_traces.py",
        "site/test_two_installations.py",
        "site/test_unknown_roots.py",
        "site/test_verify_index.py",
        "site/test_worker.py",
        "tools/test_unreadable.py",
    )
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the unit tests and the long ones."""
    for item in items:
        if not any(item.get_closest_marker(kind) for kind in KINDS):
            item.add_marker("door" if ON_SERVERS else "unit")
        elif not LONG.isdisjoint((item.path, *item.path.parents)):
            item.add_marker("long")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Take files in such an order that a long one is not last, while the other workers wait. Here,
    since pytest-django sorts the tests when all other plugins have."""
    if not hasattr(session.config, "workerinput"):
        return
    items = session.items
    sizes = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if not item.get_closest_marker("unit"))
    browser = TESTS / "browser"  # together, as they share what is started for them
    items.sort(
        key=lambda item: (
            not item.path.is_relative_to(browser),
            -slow[item.path],
            -sizes[item.path],
        )
    )


RERUNS_AT_MOST = 5

# Tests that may be skipped in CI, by the beginnings of their ids: they mount a disk, which a
# container may not.
MAY_SKIP_IN_CI: frozenset[str] = frozenset(
    {
        "tests/ingest/test_disk_full.py::"
        "test_a_disk_that_fills_up_in_mid_run_ends_the_run_and_everything_says_why",
        "tests/power/",
        "tests/site/test_failing_starts.py::test_a_disk_that_is_read_only",
        "tests/soak/test_soak.py::test_after_a_fault_nothing_is_lost_and_nothing_untrue[disk full]",
    }
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """In CI a skip is a failure: what was not tried has not passed."""
    report = yield
    skipped = report.skipped and not hasattr(report, "wasxfail")
    may_skip = item.nodeid.startswith(tuple(MAY_SKIP_IN_CI))
    if skipped and os.environ.get("CI") == "true" and not may_skip:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.hookimpl
def pytest_sessionfinish(session: pytest.Session) -> None:
    """`make test` tries a test that failed once more, since it shares its machine with others.
    The summary names it. More than a few are a fault."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and len(reporter.stats.get("rerun", ())) > RERUNS_AT_MOST:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def each_write_stays_in_its_table() -> Iterator[None]:
    """Also one whose refusal the product has caught."""
    yield
    refused = [*writes.refused]
    writes.refused.clear()
    assert not refused


@pytest.fixture(autouse=True)
def requests_begin_as_in_the_product() -> None:
    """A request in a test without a database must not meet the open connection of a test that has
    one: Django's test client looks at it at the start of each request, and a task may have used it
    after its request, in a thread that is used again."""
    request_started.disconnect(close_old_connections)
    if "codeinfo.asgi" in sys.modules:
        sys.modules["codeinfo.asgi"].http.idle.clear()


@pytest.fixture(autouse=True)
def nothing_was_unreadable() -> None:
    """What another test could not read is not told of in this one."""
    changes.unreadable_at = 0.0


@pytest.fixture
def configure(settings: Any) -> Iterator[Callable[..., None]]:
    """configure(port=1, ...) changes settings for one test."""
    before = settings.CONFIG
    folders = {before.data_dir}

    def turn(**changes: Any) -> None:
        settings.CONFIG = replace(settings.CONFIG, **changes)
        if settings.CONFIG.data_dir not in folders:
            folders.add(settings.CONFIG.data_dir)
            reset_stores()

    yield turn
    settings.CONFIG = before
    if len(folders) > 1:
        reset_stores()


def reset_stores() -> None:
    """Have a process-wide store that is open let go of its folder: the next use opens the one of
    the settings."""
    reset_texts()
    reset_grams()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder beneath the ingest base, by its real path."""
    yield Path(os.path.realpath(tmp_path))
