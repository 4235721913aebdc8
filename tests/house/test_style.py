"""Style, types, templates and schema, as the tools see them."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.house.sources import HOME, name_of, tracked

pytestmark = pytest.mark.door


def run(tool: str, *arguments: str) -> None:
    command = [Path(sys.executable).with_name(tool), *arguments]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    run("ruff", "check", ".")


def test_the_code_is_formatted() -> None:
    run("ruff", "format", "--check", ".")


def test_types_hold() -> None:
    run("mypy")


def test_templates_are_formatted() -> None:
    pages = [name_of(f) for f in tracked() if f.suffix == ".html" and "templates" in f.parts]
    run("djade", "--check", "--target-version", "5.2", *pages)


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
