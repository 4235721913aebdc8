"""The wheel as `make dist` builds it, and an environment that has it."""

import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def requirements(file: str) -> list[str]:
    """The requirements that a file of this checkout lists itself."""
    lines = (HOME / file).read_text().splitlines()
    texts = (line.partition("#")[0].strip().removesuffix("\\") for line in lines)
    return [text.strip() for text in texts if text and not text.startswith("-")]


def brought(*files: str) -> set[str]:
    """The names of all packages that an installer fetches for these files, on this machine."""
    waiting = [Requirement(text) for file in files for text in requirements(file)]
    found: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        for extra in {"", *one.extras} - {extra for name, extra in found if name == one.name}:
            found.add((one.name, extra))
            more = map(Requirement, distribution(one.name).requires or ())
            waiting += [
                each for each in more if not each.marker or each.marker.evaluate({"extra": extra})
            ]
    return {canonicalize_name(name) for name, _ in found}


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
    """A new environment. Of the packages of this one it has those that the wheel without an extra
    brings, as the download of all of them takes minutes."""
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
    (packages / "dependencies.pth").write_text(str(_linked(folder / "dependencies")))
    for path in packages.rglob("*"):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    (folder / "home").mkdir()
    return Installed(python.parent, packages, folder / "home", hostile(folder))


def _linked(folder: Path) -> Path:
    """A folder with links to the packages that the wheel brings."""
    folder.mkdir()
    for name in brought("requirements/base.in"):
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():  # several share `opentelemetry`
                (folder / top).symlink_to(str(package.locate_file(top)))
    return folder
