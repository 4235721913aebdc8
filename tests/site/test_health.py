"""Health and versions, as monitors and other programs read them."""

from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from codeinfo import __version__
from tests.house.sources import HOME


@pytest.mark.django_db
def test_health_tells_that_the_database_answers(client: Client) -> None:
    body = client.get("/health").json()
    assert (body["status"], body["mongoConnected"]) == ("ok", True)
    assert body["uptime"] >= 0
    assert body["timestamp"] > 1_700_000_000_000


@pytest.mark.django_db
def test_health_stays_200_when_the_database_is_away(client: Client) -> None:
    with patch.object(BaseDatabaseWrapper, "cursor", side_effect=OperationalError("gone")):
        answer = client.get("/health")
    assert (answer.status_code, answer.json()["mongoConnected"]) == (200, False)


def test_versions_agree(client: Client) -> None:
    assert client.get("/version").json() == {"app": "server", "version": __version__}
    assert client.get("/info").json() == {
        "message": "Server using common package",
        "info": {"app": "server", "version": __version__},
    }
    assert f'version = "{__version__}"' in (HOME / "pyproject.toml").read_text()
