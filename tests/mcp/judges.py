"""The official judges of MCP, which `make conformance` installs."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "node_modules" / ".bin"
MINUTES = 120


def node(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / "node"), str(PROGRAMS / program), *arguments]
    own = {"PATH": os.environ["PATH"], "HOME": str(cwd), "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=cwd, env=own, capture_output=True, text=True, timeout=MINUTES, check=False
    )
