"""The command that starts `codeinfo mcp` from another program, for this installation."""

import json
import shutil
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

import platformdirs

from codeinfo_cli import project


@dataclass(frozen=True)
class Launch:
    """A program with absolute path, its arguments, and the variables that it needs."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


def this_installation(data: Path) -> Launch:
    """Return the command for the server of the data folder `data`.

    Clients start it in the folder that they have open: nothing of that folder may be run.
    It is the Python of this process. From uv's cache, which is cleaned at times, it is
    `uvx codeinfo`, with `--from` unless the package came from an index.
    """
    if project.IS_INSTALLED:
        usual = Path(platformdirs.user_data_dir("codeinfo", appauthor=False))
        codeinfo: tuple[str, ...] = ("-m", "codeinfo_cli")
    else:
        usual = project.PROJECT / "data"
        codeinfo = (str(project.PACKAGE / "__main__.py"),)
    variables = {} if data.resolve() == usual.resolve() else {"CODEINFO_DATA_DIR": str(data)}
    uvx = shutil.which("uvx")
    if project.IS_INSTALLED and uvx and _is_in_cache_of_uv(Path(sys.prefix)):
        # uvx reads no settings of the current folder, and passes these on to Python.
        alone = {"PYTHONPATH": "", "UV_NO_ENV_FILE": "1"}
        return Launch(uvx, (*_origin(), "codeinfo", "mcp"), alone | variables)
    return Launch(sys.executable, (*project.FLAGS, *codeinfo, "mcp"), variables)


def _origin() -> tuple[str, ...]:
    """Return uvx's options for the file, folder or repository that was installed (PEP 610)."""
    try:
        record = metadata.distribution("codeinfo").read_text("direct_url.json")
        origin = json.loads(record or "{}")
        url = str(origin.get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return ()
    if version := origin.get("vcs_info"):
        return "--from", f"{version['vcs']}+{url}@{version['commit_id']}"
    if url.startswith("file:"):
        return "--from", unquote(urlsplit(url).path)
    return ("--from", url) if url else ()


def _is_in_cache_of_uv(prefix: Path) -> bool:
    return any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)
