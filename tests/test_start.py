"""The project loads, and `make run` installs it."""

import hashlib
import json
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command

from apps.core.system import posix
from tests.house.sources import HOME
from tests.ports import free_ports

PACKAGES = ("lantern", "mooring", "tide-table")
UV = Path(sys.executable).with_name("uv")


def test_the_project_passes_its_own_checks() -> None:
    call_command("check", fail_level="WARNING")


def wheel(folder: Path, name: str) -> str:
    """Write the wheel of an empty package. Return its line in a requirements file."""
    module = name.replace("-", "_")
    path, metadata = folder / f"{module}-1.0-py3-none-any.whl", f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", "")
        archive.writestr(
            f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        tag = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{metadata}/WHEEL", tag)
        archive.writestr(f"{metadata}/RECORD", f"{module}.py,,\n{metadata}/RECORD,,\n")
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make run` needs of a new checkout. It requires three small packages, which are at hand,
    and its server says that it was started."""
    home = tmp_path / "checkout"
    for name in ("scripts", "codeinfo_cli", "apps/core"):
        shutil.copytree(HOME / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "apps/__init__.py"):
        shutil.copy(HOME / name, home / name)
    (tmp_path / "wheels").mkdir()
    lines = [wheel(tmp_path / "wheels", name) for name in PACKAGES]
    (home / "requirements.txt").write_text("".join(lines))
    (home / "manage.py").write_text("import lantern, mooring, sys, tide_table; print(sys.argv[1:])")
    return home


def make_run(checkout: Path, *arguments: str, path: str = "") -> "subprocess.CompletedProcess[str]":
    """Run `make run`. pip and uv find packages in the folder `wheels` only."""
    wheels = str(checkout.parent / "wheels")
    (checkout.parent / "uv.toml").write_text(f"no-index = true\nfind-links = ['{wheels}']\n")
    environment = {
        "PATH": f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin",
        "HOME": str(checkout.parent),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": wheels,
        "UV_CONFIG_FILE": str(checkout.parent / "uv.toml"),
        "UV_CACHE_DIR": str(checkout.parent / "cache"),
    }
    return subprocess.run(
        ["make", "run", f"PYTHON={sys._base_executable}", *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.door
def test_make_run_looks_at_its_port_before_it_installs(checkout: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = make_run(checkout, f"PORT={port}")
        assert done.returncode != 0
        assert f"Port {port} is taken" in done.stderr and "make run PORT=" in done.stderr
        # Settings of a file are read before there is a package that reads such files.
        (checkout / ".env").write_text(f"# Ports\nPORT={port}\n")
        assert f"Port {port} is taken" in make_run(checkout).stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.door
def test_make_run_tells_where_its_server_runs_already(checkout: Path) -> None:
    data = checkout / "data"
    data.mkdir()
    facts = {"url": "http://127.0.0.1:5070", "mcp": {}, "token": "t", "pid": 1, "version": "0"}
    (data / "server.json").write_text(json.dumps(facts))
    with posix.open_private(data / "server.lock") as lock:
        posix.lock(lock)
        done = make_run(checkout)
    assert done.returncode != 0 and "runs already: http://127.0.0.1:5070/chat" in done.stderr


@pytest.mark.door
@pytest.mark.parametrize("has_uv", [False, True], ids=["pip", "uv"])
def test_make_run_installs_checks_hashes_and_serves(checkout: Path, has_uv: bool) -> None:
    path = checkout.parent / "bin"
    path.mkdir()
    if has_uv:
        (path / "uv").symlink_to(UV)
    port = f"PORT={free_ports(3)}"
    requirements = checkout / "requirements.txt"
    right = requirements.read_text()
    requirements.write_text(re.sub(r"sha256:\w+", f"sha256:{'0' * 64}", right, count=1))
    refused = make_run(checkout, port, path=str(path))
    assert refused.returncode != 0 and "hash" in refused.stderr.lower()
    requirements.write_text(right)
    done = make_run(checkout, port, path=str(path))
    assert done.returncode == 0, done.stderr
    assert "packages" in done.stdout and "installed requirements.txt" in done.stdout
    assert done.stdout.endswith("['serve']\n")
    # The packages are not listed one by one.
    assert len(done.stdout.splitlines()) < 10
    assert (checkout.parent / "cache").exists() is has_uv
