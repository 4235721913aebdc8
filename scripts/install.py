"""Install a requirements file into the virtual environment whose Python runs this, each package
checked by its hash, with uv if it is there: .venv/bin/python scripts/install.py FILE

It shows what is under way: on a terminal in one line, elsewhere a line now and then."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

# What pip and uv write at a step.
STEP = re.compile(
    r"\s*(Collecting|Requirement already satisfied:|Installing collected packages"
    r"|Resolved|Downloading|Prepared|Installed)(?: ([\w.-]+))?"
)
EVERY_SECONDS = 10.0
# Lines shown if it fails.
LAST = 30


def command(file: str) -> list[str]:
    arguments = ["install", "--require-hashes", "-r", file]
    if uv := shutil.which("uv"):
        return [uv, "pip", *arguments, "--python", sys.executable]
    return [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input"]


def steps(lines: Iterator[str], seen: list[str]) -> Iterator[str]:
    """Yield a text for each step, and keep all lines in `seen`."""
    count = 0
    for line in lines:
        seen.append(line)
        if not (step := STEP.match(line)):
            continue
        kind, name = step.groups()
        if kind in ("Collecting", "Requirement already satisfied:"):
            count += 1
            yield f"{count} packages: {name}"
        elif kind == "Downloading" and count == 0:
            yield f"downloading {name}"
        elif kind == "Installing collected packages":
            yield f"writing {count} packages"
        elif kind != "Downloading":
            yield line.strip()


def show(texts: Iterator[str]) -> None:
    is_terminal, shown_at = sys.stdout.isatty(), 0.0
    for text in texts:
        if is_terminal:
            print(f"\r  {text[:70]}\033[K", end="", flush=True)
        elif time.monotonic() - shown_at > EVERY_SECONDS:
            print(f"  {text}", flush=True)
            shown_at = time.monotonic()
    if is_terminal:
        print("\r\033[K", end="")


def main(file: str) -> int:
    began, seen = time.monotonic(), list[str]()
    with subprocess.Popen(
        command(file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as installing:
        assert installing.stdout is not None
        show(steps(installing.stdout, seen))
    if installing.returncode:
        print("".join(seen[-LAST:]), end="", file=sys.stderr)
    else:
        print(f"  installed {file} in {time.monotonic() - began:.0f} s")
    return installing.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
