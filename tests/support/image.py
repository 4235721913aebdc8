"""The Dockerfile performed in a folder, since no container engine runs where the tests do.

Its build stage is done as written: what .dockerignore lets through is copied, each RUN is run. The
absolute paths of the image lie below the folder. Of the last stage the environment and the command
are taken; its RUN, which makes a user, would change the machine.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.sources import HOME, name_of, tracked

DOCKERFILE = HOME / "Dockerfile"
# Where the image has its files, all of them.
PLACES = re.compile(r"(?<![\w.])(?=/(?:opt|var/lib/codeinfo)\b)")


@dataclass(frozen=True)
class Image:
    """What was built below `folder`."""

    folder: Path
    environ: dict[str, str]
    command: list[str]

    @property
    def home(self) -> Path:
        return self.folder / "opt/codeinfo"


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, as (NAME, the rest of the line)."""
    lines = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.M)
    found: list[list[tuple[str, str]]] = []
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            found.append([])
        if name:
            found[-1].append((name, rest))
    return found


def context() -> Iterator[str]:
    """Names of the files that reach the build: those under what .dockerignore names with a !."""
    rules = (HOME / ".dockerignore").read_text().split()
    included = [rule[1:] for rule in rules if rule.startswith("!")]
    for file in tracked():
        name = name_of(file)
        if any(
            matches(place, rule)
            for place in (name, *map(str, Path(name).parents))
            for rule in included
        ):
            yield name


def matches(name: str, pattern: str) -> bool:
    """As Docker has it: the pattern is of the whole name."""
    return Path("/", name).match(f"/{pattern}")


def build(folder: Path, venv: Path | None = None) -> Image:
    """Perform the Dockerfile below `folder`.

    With `venv` that environment stands in for the one that the image would install, which takes a
    minute and the package index.
    """
    first, last = stages()
    workdir, arguments = folder, {}
    for name, rest in first:
        here = PLACES.sub(str(folder), rest)
        if name == "ARG":
            key, _, value = rest.partition("=")
            arguments[key] = value.strip('"')
        elif name == "WORKDIR":
            workdir = Path(here)
            workdir.mkdir(parents=True)
        elif name == "COPY":
            copy(rest.split()[:-1], workdir)
        elif name == "RUN" and venv and "install-product" in rest:
            (folder / "opt/venv").symlink_to(venv)
        elif name == "RUN":
            environ = {key: value for key, value in arguments.items() if value}
            subprocess.run(here, shell=True, check=True, cwd=workdir, env=os.environ | environ)
    return Image(folder, environment(folder, last), command(last))


def copy(sources: list[str], workdir: Path) -> None:
    """COPY: files of the context keep their paths, whatever pattern named them."""
    for name in context():
        if any(source == "." or matches(name, source) for source in sources):
            (workdir / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HOME / name, workdir / name)


def environment(folder: Path, stage: list[tuple[str, str]]) -> dict[str, str]:
    """What ENV sets, with the image's paths below the folder."""
    text = " ".join(PLACES.sub(str(folder), rest) for name, rest in stage if name == "ENV")
    found = dict(pair.split("=", 1) for pair in shlex.split(text))
    return found | {"PATH": found["PATH"].replace("$PATH", os.environ["PATH"])}


def command(stage: list[tuple[str, str]]) -> list[str]:
    words: list[str] = json.loads(next(rest for name, rest in stage if name == "CMD"))
    return words
