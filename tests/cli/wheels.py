"""The wheel as `make dist` builds it, and an environment that has it."""

import os
import stat
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.hostile import Hostile, hostile
from tests.house.sources import HOME


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `make dist` builds it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel. `home` is its user's, `workspace` the current folder."""

    bin: Path
    packages: Path
    home: Path
    workspace: Hostile

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": os.defpath, "HOME": str(self.home), "LANG": "C.UTF-8", **more}

    def run(self, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.workspace.path,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self) -> set[Path]:
        return {path for path in self.packages.rglob("*") if "__pycache__" not in path.parts}


INSTALLERS = {
    "pip": [sys.executable, "-m", "pip", "--python", "{python}", "install", "--quiet"],
    "uv": [
        str(Path(sys.executable).with_name("uv")),
        "pip",
        "install",
        "--python",
        "{python}",
        "-q",
    ],
}


@pytest.fixture(scope="module", params=sorted(INSTALLERS))
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """A new environment. The packages of this one are its dependencies, as the download of all of
    them takes minutes; the wheel's own are compared above."""
    installer = INSTALLERS[request.param]
    if not Path(installer[0]).exists():
        pytest.skip("uv is not here")
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    options = ["--no-deps", "--no-index", str(wheel)]
    command = [part.format(python=python) for part in installer] + options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    for path in packages.rglob("*"):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    (folder / "home").mkdir()
    return Installed(python.parent, packages, folder / "home", hostile(folder))
