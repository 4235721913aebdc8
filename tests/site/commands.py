"""Commands of manage.py on a data folder, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.house.sources import HOME
from tests.ports import free_ports
from tests.support import forks

# Root without the right to pass over permissions: as any other user, whose files these are not.
WITHOUT_RIGHTS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
Done = subprocess.CompletedProcess[str]
SECONDS = 1_800  # however busy the machine is


def env_of(data: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(data.parent),
        "CODEINFO_DATA_DIR": str(data),
        "CODEINFO_INGEST_BASE": str(HOME),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_WATCH": "off",
        "MCP_FORCE_CODEX_AVAILABLE": "false",
        "CODEINFO_CHROMA": "off",
        "PORT": str(free_ports(3)),
        "PYTHONDONTWRITEBYTECODE": "1",
    } | more


def manage(env: dict[str, str], *command: str, user: bool = False) -> Done:
    if not user:
        return forks.manage(*command, environ=env, timeout=SECONDS)
    return subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "manage.py", *command],
        cwd=HOME,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def manage_data(data: Path, *command: str, **more: str) -> Done:
    """On a data folder whose repositories lie beside it."""
    return manage(env_of(data, CODEINFO_INGEST_BASE=str(data.parent), **more), *command)
