"""The first start of a data folder: an administrator, and something to search."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from apps.ingest.models import IngestRun
from apps.site import first_start


@pytest.mark.django_db
def test_an_administrator_is_made_once_and_can_log_in(tmp_path: Path, client: Client) -> None:
    password = first_start.ensure_admin(tmp_path)
    assert password and client.login(username="admin", password=password)
    assert (tmp_path / "admin-password.txt").read_text().strip() == password
    assert first_start.ensure_admin(tmp_path) is None
    assert get_user_model().objects.count() == 1


@pytest.mark.django_db
def test_the_first_root_is_queued_once(settings: Any, folder: Path) -> None:
    (folder / "a.py").write_text("def f(): pass\n")
    known = replace(settings.KNOBS, first_root=str(folder))
    run = first_start.ensure_first_root(known)
    assert run is not None and run.path == str(folder) and run.state == "queued"
    assert first_start.ensure_first_root(known) is None
    assert IngestRun.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("first_root", ["none", "NONE", "/no/such/folder", "/etc"])
def test_no_first_root_keeps_nothing_from_starting(settings: Any, first_root: str) -> None:
    assert first_start.ensure_first_root(replace(settings.KNOBS, first_root=first_root)) is None
