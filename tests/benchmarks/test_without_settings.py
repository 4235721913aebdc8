"""Commands and modules that need no Django settings import without them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.door

HOME = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("training.__main__, benchmarks.docstrings, benchmarks.retrieval.__main__", ()),
        ("apps.embedding.types, apps.embedding.texts, apps.embedding.static", ("django", "httpx")),
        ("apps.code.chunking, apps.code.values, apps.embedding.words", ("django", "numpy")),
    ],
)
def test_modules_import_without_settings(modules: str, absent: tuple[str, ...]) -> None:
    environ = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    check = f"import {modules}, sys; print(*sys.modules.keys() & set({absent!r}))"
    done = subprocess.run(
        [sys.executable, "-c", check],
        cwd=HOME,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), "imported needlessly"
