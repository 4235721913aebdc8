"""Work that may never end, in a process that is killed then."""

import subprocess
import sys

import pytest

from tests.house.sources import HOME

# Of processor time, so that it does not matter what else the machine does. Nothing that is well
# takes a tenth of it.
SECONDS = 60
# For work that waits instead.
WAIT_SECONDS = 1_800


def output_of(script: str, stdin: str = "", seconds: int = SECONDS) -> str:
    """What `script` writes in a process of its own, with `stdin` as its input."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))"
    command = [sys.executable, "-c", f"{limit}\nimport django\ndjango.setup()\n{script}"]
    text = stdin.encode(errors="surrogatepass")
    try:
        done = subprocess.run(
            command, cwd=HOME, input=text, capture_output=True, timeout=WAIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"killed after {WAIT_SECONDS} s")
    assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout.decode()
