"""The wheel: what is in it, and the main job from a bare environment."""

import html
import json
import re
import shutil
import signal
import stat
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import Parser
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from apps.core import __version__
from apps.core.system.command_lines import OF_CHECKOUT
from apps.embedding.catalogue import DEFAULT_MODEL
from codeinfo_cli import server
from tests.cli.wheels import Installed, brought, requirements
from tests.house.sources import HOME, name_of, tracked
from tests.ports import taken
from tests.support.ingested import SAMPLE, write_files
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

TREE = ("agents", "apps", "codeinfo", "static", "templates")
EXTRAS = ("chroma", "codex", "mongodb", "pages", "scale", "traces")


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_has_the_whole_project_tree_in_one_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"codeinfo-{__version__}-py3-none-any.whl"
    files = {name for name in names(wheel) if ".dist-info/" not in name}
    expected = {
        f"codeinfo_cli/project/{name}"
        for name in map(name_of, tracked())
        if name.split("/")[0] in TREE or name == "manage.py"
    }
    command = {name for name in map(name_of, tracked()) if name.startswith("codeinfo_cli/")}
    documents = {name for name in files if name.startswith("codeinfo_cli/project/docs/")}
    assert files - documents == expected | command
    assert documents and all((HOME / name[21:]).is_file() for name in documents)
    licences = {name.rpartition("/licenses/")[2] for name in names(wheel) if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}


def locked_file(extra: str) -> str:
    """Where the versions of a checkout are."""
    return f"requirements-{extra}.txt" if extra not in ("", *OF_CHECKOUT) else "requirements.txt"


def ranges(texts: list[str]) -> dict[str, tuple[SpecifierSet, set[str]]]:
    """Name → versions and extras."""
    read = map(Requirement, texts)
    return {canonicalize_name(each.name): (each.specifier, each.extras) for each in read}


def test_its_dependencies_are_ranges_that_the_locked_versions_satisfy(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"codeinfo-{__version__}.dist-info/METADATA").decode()
    required = Parser().parsestr(metadata).get_all("Requires-Dist", [])
    assert f"mcp-name: {json.loads((HOME / 'server.json').read_text())['name']} " in metadata
    for extra in ("", *EXTRAS):
        mark = f"extra == '{extra}'" if extra else ""
        texts = [
            text.partition(";")[0] for text in required if text.partition(";")[2].strip() == mark
        ]
        assert ranges(texts) == ranges(requirements(f"requirements/{extra or 'base'}.in"))
        locked = requirements(locked_file(extra))
        pins = [Requirement(text) for text in locked if "==" in text]
        for name, (allowed, _) in ranges(texts).items():
            versions = [pin.specifier for pin in pins if canonicalize_name(pin.name) == name]
            assert versions, name
            for (pin,) in versions:
                assert allowed.contains(pin.version, prereleases=True), (name, pin)


def test_without_an_extra_it_brings_no_chroma_and_at_most_80_packages() -> None:
    packages = brought("requirements/base.in")
    assert len(packages) < 80  # it is one itself
    further = brought("requirements/base.in", "requirements/chroma.in") - packages
    assert "chromadb" in further and len(further) > 30


# Packages whose new major versions are accepted, and why.
ANY_MAJOR = {
    "cryptography": "several major versions a year, with security fixes; Fernet is stable",
    "drf-spectacular-sidecar": "its versions are dates",
}


@pytest.mark.parametrize("file", ["base", *EXTRAS])
def test_no_dependency_may_come_in_its_next_major_version(file: str) -> None:
    locked = requirements(locked_file("" if file == "base" else file))
    pins = {canonicalize_name(each.name): each.specifier for each in map(Requirement, locked)}
    for name, (allowed, _) in ranges(requirements(f"requirements/{file}.in")).items():
        (pin,) = pins[name]
        following = f"{Version(pin.version).major + 1}.0"
        assert allowed.contains(following) == (name in ANY_MAJOR), (name, following)


def data_folder(installed: Installed) -> Path:
    script = "from codeinfo_cli import project; print(project.data_dir())"
    done = installed.run("python", "-P", "-c", script)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@contextmanager
def serving(installed: Installed, data: Path, **more: str) -> Iterator[httpx.Client]:
    """`codeinfo serve`; yields a client with the token of server.json."""
    with (installed.home / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [installed.bin / "codeinfo", "serve"],
            cwd=installed.workspace.path,
            env=installed.environment(**more),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: process.poll() is not None or server.running(data) is not None)
        address = server.running(data)
        assert address is not None, (installed.home / "serve.log").read_text()
        headers = {"Authorization": f"Bearer {address.token}"}
        with httpx.Client(base_url=address.url, headers=headers, timeout=60) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ingest(client: httpx.Client, folder: Path) -> httpx.Response:
    body = {"path": str(folder), "name": folder.name, "model": DEFAULT_MODEL}
    answer = client.post("/ingest/start", json=body)
    if answer.status_code == 202:
        status = f"/ingest/status/{answer.json()['runId']}"
        wait_until(lambda: client.get(status).json()["state"] == "completed")
    return answer


def test_a_bare_environment_does_the_main_job(installed: Installed) -> None:
    before = installed.files()
    data = data_folder(installed)
    assert data.is_relative_to(installed.home) and not data.exists()
    outside = write_files(installed.home.parent / "outside", SAMPLE)
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with serving(installed, data, **traces) as client:
        assert client.get("/ingest/roots").json()["roots"] == []  # CODEINFO_FIRST_ROOT is `none`
        assert client.get("/ingest/bases").json()["bases"] == [str(installed.home.resolve())]
        assert ingest(client, outside).json()["code"] == "OUTSIDE_BASE"
        assert client.post("/ingest/bases", json={"path": str(outside)}).status_code == 200
        assert ingest(client, outside).status_code == 202
        found = client.post("/tools/vector-search", json={"query": "retry with a delay"}).json()
        assert found["results"][0]["repo"] == "outside"
        # Templates, static files (also of the admin), example agents, and the hint for an extra.
        for path in ("/", "/chat", "/ingest", "/static/css/base.css", "/static/admin/css/base.css"):
            assert client.get(path).status_code == 200, path
        for address in re.findall(r'"(/static/[^"]+)"', client.get("/chat").text):
            assert "immutable" in client.get(address).headers["Cache-Control"], address
        agents = client.get("/agents", headers={"Accept": "application/json"}).json()["agents"]
        assert {each["name"] for each in agents} == {"code_tour", "risk_finder"}
        health = client.get("/health").json()
        assert health["degraded"] == []
        assert health["parts"]["chroma"]["word"] == "Off"
        assert "codeinfo[chroma]" in health["parts"]["chroma"]["detail"]
        source = {"source": "flowchart LR\n A --> B\n"}
        token = {"X-CSRFToken": client.cookies["csrftoken"]}
        drawn = client.post("/ui/chat/diagram", data=source, headers=token)
        for answer in (client.get("/api/docs"), drawn):
            assert "pip install 'codeinfo[pages]'" in html.unescape(answer.text), answer.url
    log = (installed.home / "serve.log").read_text()
    assert "pip install 'codeinfo[traces]'" in log
    assert not (data / "server.json").exists()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert (data / "logs" / "server.log").is_file()
    assert installed.files() == before
    assert installed.workspace.ran == []


# What follows does not depend on the installer.
by_pip = pytest.mark.parametrize("installed", ["pip"], indirect=True)


@by_pip
def test_commands_that_messages_name_are_there(installed: Installed) -> None:
    script = "from codeinfo_cli import project; project.use()\n"
    script += "from apps.core.system.command_lines import manage, install_extra\n"
    script += "print(manage('verify_index'), '|', manage('doctor'), '|', install_extra('codex'))"
    done = installed.run("python", "-P", "-c", script)
    assert done.stdout.strip() == (
        "codeinfo manage verify_index | codeinfo doctor | pip install 'codeinfo[codex]'"
    )
    done = installed.run("codeinfo", "manage", "migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    done = installed.run("codeinfo", "manage", "verify_index", "--json")
    assert done.returncode == 0, done.stderr
    assert '"roots"' in done.stdout
    assert "verify_index" in installed.run("codeinfo", "manage", "verify_index", "--help").stdout


@by_pip
def test_a_taken_port_means_the_next_free_one_but_not_if_you_named_it(installed: Installed) -> None:
    data = data_folder(installed)
    with taken(server.FIRST_PORT):
        with serving(installed, data) as client:
            assert client.base_url.port != server.FIRST_PORT
            assert client.get("/version").json()["app"] == "server"
        done = installed.run("codeinfo", "serve", PORT=str(server.FIRST_PORT))
    assert done.returncode != 0
    assert f"Port {server.FIRST_PORT} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@by_pip
def test_settings_of_a_wheel_are_in_the_folder_of_the_users_settings(installed: Installed) -> None:
    settings = installed.home / ".config" / "codeinfo" / ".env"
    script = "from codeinfo_cli import project; print(project.settings_file())"
    assert installed.run("python", "-P", "-c", script).stdout.strip() == str(settings)
    settings.parent.mkdir(parents=True)
    settings.write_text("PORT=none-of-these\n")
    try:
        done = installed.run("codeinfo", "serve")
    finally:
        shutil.rmtree(settings.parent)
    assert "PORT" in done.stderr and "Traceback" not in done.stderr
