"""Imports point one way (docs/architecture.md)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import HOME

pytestmark = pytest.mark.door


def test_import_contracts_hold() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "23 kept, 0 broken" in done.stdout


def test_apps_is_never_itself_on_the_path() -> None:
    # `apps.mcp` would shadow the PyPI package `mcp`.
    assert str(HOME / "apps") not in sys.path


def test_a_start_imports_no_library_before_it_is_used() -> None:
    """A server answers sooner, `manage.py check` and the tests are faster."""
    heavy = (
        "OpenSSL",
        "chromadb",
        "django.contrib.postgres",
        "django.test",
        "drf_spectacular.openapi",
        "mcp_types",
        "mermaidx",
        "onnxruntime",
        "openai",
        "openai_codex",
        "psycopg",
        "pydantic",
        "requests",
        "rich",
        "tree_sitter_language_pack",
        "yaml",
    )
    script = (
        "import sys, django; django.setup();"
        "import codeinfo.urls, codeinfo.asgi, apps.site.management.commands.serve;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=HOME,
        env={"DJANGO_SETTINGS_MODULE": "codeinfo.settings", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
