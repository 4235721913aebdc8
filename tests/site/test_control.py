"""The control socket: who is answered, within which limits, and what is left of it."""

import os
import resource
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import InvalidInput, Unavailable
from apps.core.system import posix
from apps.site.control import address, server
from apps.site.control.address import Listener, NotListening, connect
from apps.site.control.client import Refused, ask
from apps.site.control.lines import Lines
from apps.site.control.server import Control


def echo(options: Mapping[str, Any], check: Callable[[], None], report: Any) -> dict[str, Any]:
    report("one")
    report("two")
    if "code" in options:
        raise InvalidInput("not that")
    return {"options": dict(options)}


@contextmanager
def controlled(folder: Path, **verbs: Any) -> Iterator[Control]:
    folder.mkdir(parents=True, exist_ok=True)
    control = Control(folder, {"echo": echo} | verbs)
    control.start()
    try:
        yield control
    finally:
        control.stop()


def silent(message: str) -> None:
    pass


def test_a_request_is_answered_with_its_progress(tmp_path: Path) -> None:
    messages: list[str] = []
    with controlled(tmp_path):
        assert ask(tmp_path, "echo", {"a": 1}, messages.append) == {"options": {"a": 1}}
    assert messages == ["one", "two"]


def test_errors_and_unknown_requests_are_returned(tmp_path: Path) -> None:
    with controlled(tmp_path):
        for verb, options, code in (
            ("echo", {"code": 1}, "VALIDATION_FAILED"),
            ("none", {}, "VALIDATION_FAILED"),
        ):
            with pytest.raises(Refused) as refused:
                ask(tmp_path, verb, options, silent)
            assert refused.value.code == code


def test_the_socket_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    with controlled(tmp_path):
        found = (tmp_path / "control.sock").stat()
        assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
    assert not (tmp_path / "control.sock").exists()
    assert connect(tmp_path) is None
    assert ask(tmp_path, "echo", {}, silent) is None


def test_a_path_longer_than_a_socket_address_works(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["long" * 20] * 3)
    assert len(str(folder)) > 200
    with controlled(folder):
        assert ask(folder, "echo", {}, silent) == {"options": {}}
        assert (folder / "control.sock").is_socket()
    assert not (folder / "control.sock").exists()


def test_without_a_usable_path_the_server_has_no_control_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(address, "DESCRIPTORS", tmp_path / "none")
    folder = tmp_path / ("long" * 40)
    with controlled(folder):
        assert ask(folder, "echo", {}, silent) is None
    assert "no control socket" in caplog.text


@pytest.mark.fault("The control socket is misused")
def test_what_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "control.sock"))
    assert connect(tmp_path) is None
    with controlled(tmp_path):
        assert ask(tmp_path, "echo", {}, silent) is not None


def test_a_second_server_on_a_folder_leaves_the_first_its_socket(tmp_path: Path) -> None:
    with controlled(tmp_path):
        with pytest.raises(NotListening, match="another server"):
            Listener(tmp_path)
        with controlled(tmp_path):
            pass
        assert ask(tmp_path, "echo", {}, silent) is not None


@pytest.mark.fault("The control socket is misused")
@pytest.mark.parametrize(
    "request_bytes",
    [b"no json\n", b"[]\n", b"\xff\n", b'"' + b"x" * 200_000, b"", b"[" * 60_000 + b"\n"],
)
def test_a_request_that_is_none_ends_its_connection_alone(
    tmp_path: Path, request_bytes: bytes
) -> None:
    with controlled(tmp_path):
        end = connect(tmp_path)
        assert end is not None
        with end:
            try:
                end.sendall(request_bytes)
                end.shutdown(socket.SHUT_WR)
                assert end.recv(1) == b""
            except (BrokenPipeError, ConnectionResetError):
                pass
        assert ask(tmp_path, "echo", {}, silent) is not None


def test_a_request_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SECONDS", 0.05)
    with controlled(tmp_path):
        end = connect(tmp_path)
        assert end is not None
        with end:
            assert end.recv(1) == b""


def test_one_request_is_worked_on_at_a_time_and_ends_when_its_client_goes(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    def long(options: Any, check: Callable[[], None], report: Any) -> dict[str, Any]:
        begun.set()
        try:
            while True:
                check()
                ended.wait(0.01)
        finally:
            ended.set()

    with controlled(tmp_path, long=long):
        end = connect(tmp_path)
        assert end is not None
        with end:
            Lines(end, 1_000).write({"verb": "long"})
            assert begun.wait(10)
            with pytest.raises(Refused, match="at work") as refused:
                ask(tmp_path, "echo", {}, silent)
            assert refused.value.code == "BUSY"
        assert ended.wait(10)


@pytest.mark.fault("The control socket is misused")
def test_a_request_is_answered_where_a_thousand_files_are_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_048:
        pytest.skip("this system allows too few open files")

    def looks(options: Any, check: Callable[[], None], report: Any) -> dict[str, Any]:
        check()
        return {}

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_048), hard))
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        with controlled(tmp_path, looks=looks):
            assert ask(tmp_path, "looks", {}, silent) == {}
    finally:
        for each in descriptors:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_end_of_the_server_ends_the_work(tmp_path: Path) -> None:
    begun = threading.Event()

    def long(options: Any, check: Callable[[], None], report: Any) -> dict[str, Any]:
        begun.set()
        while True:
            check()

    failures: list[Exception] = []

    def client() -> None:
        try:
            ask(tmp_path, "long", {}, silent)
        except (Refused, Unavailable) as error:
            failures.append(error)

    with controlled(tmp_path, long=long):
        thread = threading.Thread(target=client)
        thread.start()
        assert begun.wait(10)
    thread.join()
    assert "server stopped" in str(failures[0])


@pytest.mark.fault("The control socket is misused")
@pytest.mark.parametrize(("uid", "expected"), [(0, True), (os.geteuid() + 7, False)])
def test_only_this_user_and_root_are_answered(uid: int, expected: bool) -> None:
    class Other:
        def getsockopt(self, *args: int) -> bytes:
            return struct.pack("3i", 1, uid, 0)

    other: Any = Other()
    assert posix.is_own_user(other) is expected


def test_a_stranger_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posix, "is_own_user", lambda end: False)
    with controlled(tmp_path), pytest.raises(Unavailable):
        ask(tmp_path, "echo", {}, silent)
