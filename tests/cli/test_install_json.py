"""What `codeinfo install --json` says of several clients."""

import errno
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from codeinfo_cli.clients.client import Machine
from codeinfo_cli.clients.table import client_named
from tests.cli.installing import given


def test_json_says_which_of_several_clients_was_written(
    run: Callable[..., Result], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (machine.home / ".cursor").mkdir()
    kiro = client_named("kiro")
    assert kiro
    given(kiro.config(machine), b"{}")
    make = tempfile.mkstemp

    def full(*, dir: Path, prefix: str) -> tuple[int, str]:
        if dir == kiro.config(machine).parent:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(dir=dir, prefix=prefix)

    monkeypatch.setattr(tempfile, "mkstemp", full)
    done = run("install", "--json", "--yes")
    rows = json.loads(done.output.splitlines()[0])
    assert done.exit_code == 2
    assert {row["client"]: row["written"] for row in rows} == {"cursor": True, "kiro": False}
