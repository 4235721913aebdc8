"""Commands that set Django up themselves, or need none of it, start without its settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.door

HOME = Path(__file__).resolve().parents[2]
MODULES = "training.__main__, benchmarks.docstrings, benchmarks.retrieval.__main__"


def test_commands_that_need_no_settings_are_read_without_them() -> None:
    environ = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-c", f"import {MODULES}"],
        cwd=HOME,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
