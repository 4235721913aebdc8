"""Off loopback the product does not start unprotected, unless told so in as many words."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.views.debug import technical_500_response

from apps.core.config import Config
from apps.core.security.access import check_exposure
from apps.core.security.authentication import allowed_hosts
from tests.house.sources import HOME

GUARDS = {
    "CODEINFO_REQUIRE_LOGIN": "true",
    "CODEINFO_API_TOKEN": "a",
    "CODEINFO_MCP_TOKEN": "b",
}


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_nothing(address: str) -> None:
    check_exposure(Config.read({"CODEINFO_BIND": address}))


@pytest.mark.fault("Unsafe settings")
def test_any_other_address_needs_a_login() -> None:
    """Tokens alone would leave the pages open."""
    known = GUARDS | {"CODEINFO_REQUIRE_LOGIN": "false"}
    with pytest.raises(ImproperlyConfigured, match="CODEINFO_REQUIRE_LOGIN"):
        check_exposure(Config.read({"CODEINFO_BIND": "0.0.0.0", **known}))


def test_a_login_or_an_explicit_word_is_enough() -> None:
    """Tokens that are not set are made: tests/site/test_compose.py."""
    check_exposure(Config.read({"CODEINFO_BIND": "0.0.0.0", "CODEINFO_REQUIRE_LOGIN": "true"}))
    check_exposure(Config.read({"CODEINFO_BIND": "0.0.0.0", "CODEINFO_ALLOW_OPEN_ACCESS": "true"}))


@pytest.mark.fault("Unsafe settings")
@pytest.mark.parametrize(
    "reachable",
    [{"CODEINFO_BIND": "0.0.0.0", **GUARDS}, {"CODEINFO_ALLOWED_HOSTS": "code.example"}],
)
def test_debug_pages_are_not_for_others(reachable: dict[str, str]) -> None:
    check_exposure(Config.read({"CODEINFO_DEBUG": "true"}))
    with pytest.raises(ImproperlyConfigured, match="CODEINFO_DEBUG"):
        check_exposure(Config.read({"CODEINFO_DEBUG": "true", **reachable}))


@pytest.mark.fault("Unsafe settings")
@pytest.mark.parametrize("how", [GUARDS, {"CODEINFO_ALLOW_OPEN_ACCESS": "true"}])
def test_an_address_for_others_names_its_hosts(how: dict[str, str]) -> None:
    anyone = {"CODEINFO_BIND": "0.0.0.0", "CODEINFO_ALLOWED_HOSTS": "*", **how}
    with pytest.raises(ImproperlyConfigured, match="CODEINFO_ALLOWED_HOSTS"):
        check_exposure(Config.read(anyone))


PROXIED: list[dict[str, str]] = [
    {"CODEINFO_REQUIRE_LOGIN": "true"},
    {"CODEINFO_ALLOWED_HOSTS": "code.example"},
    {"CODEINFO_ALLOWED_HOSTS": "*"},
]


@pytest.mark.fault("A proxy, or a forged address")
@pytest.mark.door
@pytest.mark.django_db
@pytest.mark.parametrize("environ", PROXIED)
@pytest.mark.parametrize("path", ["/conversations", "/ingest/roots", "/chat/providers", "/mcp"])
def test_behind_a_proxy_of_this_machine_nothing_is_open(
    client: Client, settings: Any, environ: dict[str, str], path: str
) -> None:
    """Every request comes from loopback there."""
    settings.CONFIG = replace(
        settings.CONFIG,
        require_login="CODEINFO_REQUIRE_LOGIN" in environ,
        allowed_hosts=Config.read(environ).allowed_hosts,
    )
    if path == "/mcp":
        assert client.post(path, {}, content_type="application/json").status_code == 401
    else:
        assert client.get(path).status_code == 401
    settings.CONFIG = replace(settings.CONFIG, require_login=False, allow_open_access=True)
    if path != "/mcp":
        assert client.get(path).status_code == 200


SECRETS = {
    "CODEINFO_API_TOKEN": "canary-api",
    "CODEINFO_MCP_TOKEN": "canary-mcp",
    "CODEINFO_SECRET_KEY": "canary-secret-key",
    "CODEINFO_LMSTUDIO_API_TOKEN": "sk-lm-canary12:canarycanarycanary12",
    "CODEINFO_OPENAI_API_KEY": "canary-openai",
    "CODEINFO_EMBEDDING_API_KEY": "canary-embedding",
    "DATABASE_URL": "postgres://codeinfo:canary-database@db/codeinfo",
    "REDIS_URL": "redis://:canary-redis@redis:6379/0",
    "CHROMA_URL": "http://canary-chroma:8000",
    "CELERY_BROKER_URL": "amqp://codeinfo:canary-broker@rabbit",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "https://codeinfo:canary-otel@collector",
}


@pytest.mark.fault("Unsafe settings")
def test_no_secret_stands_in_the_settings_as_they_are_printed() -> None:
    assert "canary" not in repr(Config.read(SECRETS))


@pytest.mark.fault("Unsafe settings")
def test_no_secret_stands_on_a_debug_page(settings: Any, rf: Any) -> None:
    """Django hides settings by their names alone."""
    settings.CONFIG = Config.read(SECRETS)
    settings.DEBUG = True
    settings.SECRET_KEY = "canary-secret-key"
    settings.CHANNEL_LAYERS = {"default": {"CONFIG": {"hosts": [SECRETS["REDIS_URL"]]}}}
    settings.MONGODB = {"HOST": "mongodb://codeinfo:canary-database@db/codeinfo"}
    try:
        raise RuntimeError("for the page")
    except RuntimeError:
        page = technical_500_response(rf.get("/"), *sys.exc_info()).content.decode()
    # What stands before them shows the lines of this test.
    shown = page.partition('id="settings-info"')[2]
    assert "CONFIG" in shown and "canary" not in shown


@pytest.mark.door
def test_behind_a_proxy_with_tls_django_has_nothing_to_warn_of(tmp_path: Path) -> None:
    """The settings of docs/operations.md."""
    text = (HOME / "docs/operations.md").read_text().partition("## Behind a proxy with TLS")[2]
    environ = dict(re.findall(r"^    ([A-Z_]+)=(.*)$", text, re.M))
    environ |= {"CODEINFO_DATA_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(
        command, cwd=HOME, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_bound_address_is_a_host_we_answer_to() -> None:
    known = Config.read({"CODEINFO_BIND": "10.0.0.5", "CODEINFO_ALLOWED_HOSTS": "code.example"})
    assert {"10.0.0.5", "code.example", "localhost"} <= set(allowed_hosts(known))
    assert "0.0.0.0" not in allowed_hosts(Config.read({"CODEINFO_BIND": "0.0.0.0"}))
