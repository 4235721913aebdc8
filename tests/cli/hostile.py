"""A folder of somebody else's, as a client may have open: whatever of it is run leaves a mark."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.ingested import SAMPLE, write_files

# Modules that codeinfo, its dependencies or Python itself may look for
MODULES = sorted(
    {"sitecustomize", "usercustomize", "conftest", "manage", "click", "environ", "httpx", "mcp"}
    | {
        "anyio",
        "platformdirs",
        "tomlkit",
        "dotenv",
        "chromadb",
        "numpy",
        "openai_codex",
        "pydantic",
    }
    | {"tree_sitter", "pygments", "daphne", "uvicorn", "re2", "settings", "setup", "pip"}
    | sys.stdlib_module_names
)
PACKAGES = ("codeinfo_cli", "codeinfo", "apps", "django", "rest_framework", "channels", "templates")
PROGRAMS = ("sh", "env", "dirname", "readlink", "git", "node", "npm", "bwrap", "codex", "ldconfig")
PROGRAMS += ("python", "python3", "uv", "uvx", "xdg-open", "gcc", "ldd", "uname")
# What uv, Django and Chroma might read
SETTINGS = {
    ".env": "PYTHONPATH=.\nDJANGO_SETTINGS_MODULE=settings\nCODEINFO_DATA_DIR=./data\nPORT=1\n",
    ".python-version": "./.venv/bin/python\n",
    ".python-versions": "./.venv/bin/python\n",
    ".venv/pyvenv.cfg": "home = .\nversion = 3.11.7\n",
    "uv.toml": 'find-links = ["./dist"]\n',
    "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n[tool.uv]\nfind-links = ["./dist"]\n',
    "alembic.ini": "[alembic]\nscript_location = .\n",
}
OPENED = 0x20  # IN_OPEN of inotify
IS_FOLDER = 0x40000000
EVENT = struct.Struct("iIII")


@dataclass
class Hostile:
    """The folder, and the file with one line for each part of it that was run."""

    path: Path
    marks: Path
    opened: set[str] = field(default_factory=set)

    @property
    def ran(self) -> list[str]:
        return self.marks.read_text().splitlines() if self.marks.exists() else []

    def variables(self, usual: Mapping[str, str]) -> dict[str, str]:
        """The variables of a careless user: programs, modules and settings are looked for in the
        current folder first."""
        path = f".::{usual['PATH']}"
        return {**usual, "PATH": path, "PYTHONPATH": ":.", "UV_ENV_FILE": ".env"}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Put the files that are opened meanwhile into `opened`. (Linux)"""
        folders = [self.path, *(path for path in self.path.rglob("*") if path.is_dir())]
        libc = ctypes.CDLL(None, use_errno=True)
        notices = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert notices >= 0
        try:
            watched = {
                libc.inotify_add_watch(notices, os.fsencode(one), OPENED): one for one in folders
            }
            assert min(watched) > 0
            yield
            self.opened.update(self._opened(notices, watched))
        finally:
            os.close(notices)

    def _opened(self, notices: int, watched: Mapping[int, Path]) -> Iterator[str]:
        while True:
            try:
                found = os.read(notices, 1 << 20)
            except BlockingIOError:
                return
            at = 0
            while at < len(found):
                watch, mask, _, length = EVENT.unpack_from(found, at)
                at += EVENT.size + length
                name = found[at - length : at].rstrip(b"\0").decode()
                if not mask & IS_FOLDER:
                    yield str((watched[watch] / name).relative_to(self.path))


def hostile(folder: Path) -> Hostile:
    """Write the folder, with a repository in it."""
    made = Hostile(folder / "workspace", folder / "marks")
    # Also while Python starts, when it has no codecs and no builtin `open`
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    python = (
        "import posix\n"
        f"file = posix.open({os.fsencode(made.marks)!r}, {flags})\n"
        "posix.write(file, (__file__ + '\\n').encode())\n"
    )
    shell = f'#!/bin/sh\necho "$0" >> {made.marks}\nexit 1\n'
    packages = {
        f"{name}/{part}.py": python for name in PACKAGES for part in ("__init__", "__main__")
    }
    write_files(made.path, SAMPLE | SETTINGS | packages)
    write_files(made.path, {f"{name}.py": python for name in MODULES})
    write_files(made.path, {"evil.pth": f"import posix; __file__ = 'evil.pth'; exec({python!r})\n"})
    programs = [*PROGRAMS, *(f".venv/bin/{name}" for name in ("python", "python3", "codeinfo"))]
    write_files(made.path, dict.fromkeys(programs, shell))
    for name in programs:
        (made.path / name).chmod(0o755)
    return made
