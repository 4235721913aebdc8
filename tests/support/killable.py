"""Work that may never end, in a process that is killed then."""

import subprocess
import sys

import pytest

from tests.house.sources import HOME

# Nothing that is well takes a tenth of it.
SECONDS = 60


def output_of(script: str, stdin: str = "", seconds: float = SECONDS) -> str:
    """What `script` writes in a process of its own, with `given` as its input."""
    command = [sys.executable, "-c", f"import django\ndjango.setup()\n{script}"]
    text = stdin.encode(errors="surrogatepass")
    try:
        done = subprocess.run(command, cwd=HOME, input=text, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        pytest.fail(f"killed after {seconds} s")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()
