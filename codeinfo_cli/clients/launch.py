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

    Clients start it in the folder that they have open: nothing of that folder may be run. It is
    the Python of this process. From uv's cache, which is cleaned at times, it is the one that uvx
    installs codeinfo for, from where this installation came. uvx reads no settings of the folder
    (`--no-config` would drop those of the user, such as an index), but `codeinfo` of its cache is a
    script that looks for programs by PATH.
    """
    if project.IS_INSTALLED:
        usual = Path(platformdirs.user_data_dir("codeinfo", appauthor=False))
        codeinfo: tuple[str, ...] = ("-m", "codeinfo_cli")
    else:
        usual = project.PROJECT / "data"
        codeinfo = (str(project.PACKAGE / "__main__.py"),)
    words = (*project.FLAGS, *codeinfo, "mcp")
    variables = {} if data.resolve() == usual.resolve() else {"CODEINFO_DATA_DIR": str(data)}
    uvx = shutil.which("uvx")
    if project.IS_INSTALLED and uvx and _is_in_cache_of_uv(Path(sys.prefix)):
        variables["UV_NO_ENV_FILE"] = "1"
        return Launch(uvx, ("--from", _origin(), "python", *words), variables)
    return Launch(sys.executable, words, variables)


def _origin() -> str:
    """Return the file, folder or repository that was installed (PEP 610), or the package's name."""
    try:
        record = metadata.distribution("codeinfo").read_text("direct_url.json")
        origin = json.loads(record or "{}")
        url = str(origin.get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return "codeinfo"
    if version := origin.get("vcs_info"):
        return f"{version['vcs']}+{url}@{version['commit_id']}"
    if url.startswith("file:"):
        return unquote(urlsplit(url).path)
    return url or "codeinfo"


def _is_in_cache_of_uv(prefix: Path) -> bool:
    return any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)
