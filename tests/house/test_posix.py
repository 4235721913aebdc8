"""What only POSIX systems have is in apps/core/system/posix.py: the rest imports on any system."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.house.sources import HOME, name_of, product

pytestmark = pytest.mark.door

MODULES = ("fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios")
FUNCTIONS = {
    "os": (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH"),
        *("fchmod", "fchown", "chown", "lchown", "fork", "fwalk", "getegid", "geteuid", "getgid"),
        *("getuid", "getpgid", "killpg", "mkfifo", "nice", "pread", "pwrite", "register_at_fork"),
        *("sched_getaffinity", "sched_setaffinity", "setsid", "statvfs", "waitid", "WNOHANG"),
    ),
    "socket": ("AF_UNIX", "SO_PEERCRED"),
    "signal": ("SIGBUS", "SIGHUP", "SIGKILL"),
}
# Without these names too, which only one system has, the modules import.
ALSO_MISSING = {
    "socket": ("AF_NETLINK",),
    "signal": ("SIGPROF", "SIGPIPE", "setitimer", "ITIMER_PROF", "pthread_sigmask"),
}
HOME_OF_THEM = "apps/core/system/posix.py"


def used(source: str) -> Iterator[str]:
    """Yield the names and modules of a source that only POSIX systems have."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in FUNCTIONS.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
            yield "dir_fd"
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {each.name for each in node.names}
            if node.module in MODULES or names & {*FUNCTIONS.get(node.module, ())}:
                yield node.module


def test_one_module_has_what_only_posix_systems_have() -> None:
    found = {name_of(file): set(used(file.read_text())) for file in product()}
    assert {"fcntl", "resource", "dir_fd"} <= found.pop(HOME_OF_THEM)
    assert {name: names for name, names in found.items() if names} == {}


# Imports every module; prints the foreign ones that this has imported.
EVERYTHING = """
import importlib, sys, django
django.setup()
for name in sys.argv[1].split():
    importlib.import_module(name)
"""
FOREIGN = """
print(*(name for name in sys.modules if name.partition(".")[0] not in ("apps", "codeinfo")))
"""
# The foreign modules are imported before, as they look for such names themselves.
ELSEWHERE = f"""
import builtins, importlib, os, signal, socket, sys
for name in sys.argv[2].split():
    try:
        importlib.import_module(name)
    except Exception:  # a part of a package that another part imports conditionally
        pass
for name in [name for name in sys.modules if name.partition(".")[0] in ("apps", "codeinfo")]:
    del sys.modules[name]  # with them came the settings
import_module = builtins.__import__
def elsewhere(name, globals=None, *rest, **options):
    of = (globals or {{}}).get("__name__", "").partition(".")[0]
    if name in {MODULES!r} and of in ("apps", "codeinfo"):
        raise ImportError(name)
    return import_module(name, globals, *rest, **options)
builtins.__import__ = elsewhere
for table in ({FUNCTIONS!r}, {ALSO_MISSING!r}):
    for module, names in table.items():
        for name in names:
            vars(sys.modules[module]).pop(name, None)
"""
REFUSED = """
from pathlib import Path
from apps.core.system import posix
refused = []
for act in (
    lambda: posix.lock(0), lambda: posix.open_folder(Path("/")),
    lambda: posix.pread(0, 1, 0), lambda: posix.sync_folder(Path("/")),
):
    try:
        act()
    except posix.Unsupported as error:
        refused.append(str(error))
print(len(refused), posix.file_limits(), posix.user_id(), posix.is_read_only(Path("/")))
"""


def names() -> str:
    """The modules of apps and codeinfo, but those that are run."""
    files = (name_of(file) for file in product())
    dotted = (name[:-3].replace("/", ".").removesuffix(".__init__") for name in files)
    # These need what is an extra, or are the start of a process.
    skipped = ("__main__", "codeinfo.celery", "codeinfo.asgi", "mongodb", "postgres")
    return " ".join(name for name in dotted if not any(part in name for part in skipped))


def run(script: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    environment |= {"DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
    environment |= {"CODEINFO_DATA_DIR": os.environ["CODEINFO_DATA_DIR"]}
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    done = subprocess.run(
        command, cwd=HOME, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_imports_where_posix_is_missing() -> None:
    modules = names()
    foreign = run(f"{EVERYTHING}{FOREIGN}", modules)
    assert len(foreign.split()) > 500
    out = run(f"{ELSEWHERE}{EVERYTHING}{REFUSED}", modules, foreign)
    assert out.split() == ["4", "None", "0", "False"]
