"""An agent's `config.toml`: our keys under `[codeinfo]`, the rest is Codex' own."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from apps.agent_runs.definitions.types import Rights
from apps.core.config import PROVIDERS
from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.retrieval.tools import TOOLS

OURS = "codeinfo"
# One table: the keys that a folder may set, how each is checked, and what docs/agents.md explains.
Check = Callable[[str, Any], Any]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 255:
        raise InvalidInput(f"{name} must be a text of 1-255 characters")
    return value.strip()


def _provider(name: str, value: Any) -> str:
    if value not in PROVIDERS:
        raise InvalidInput(f"{name} must be one of: {', '.join(PROVIDERS)}")
    return str(value)


def _names(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
        raise InvalidInput(f"{name} must be a list of names")
    return tuple(dict.fromkeys(value))


def _tools(name: str, value: Any) -> tuple[str, ...]:
    names, known = _names(name, value), [tool.name for tool in TOOLS]
    if unknown := [one for one in names if one not in known]:
        raise InvalidInput(f"{name}: there is no {unknown[0]!r}; there are: {', '.join(known)}")
    return names


def _repositories(name: str, value: Any) -> tuple[str, ...]:
    names = _names(name, value)
    if not names:
        raise InvalidInput(f"{name} must name one at least; without the key all can be searched")
    return names


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false")
    return value


KEYS: Mapping[str, Check] = {
    "provider": _provider,
    "model": _text,
    "tools": _tools,
    "repositories": _repositories,
    "write": _truth,
    "run": _truth,
    "network": _truth,
}
RIGHTS = ("write", "run", "network")


def parse(text: str) -> JSON:
    """The fields of an Agent that `config.toml` decides. Raises InvalidInput with what is wrong.

    An unknown key of ours is refused: a limit that is misspelt would be no limit.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"config.toml is no TOML: {error}") from error
    ours = document.pop(OURS, {})
    if not isinstance(ours, dict):
        raise InvalidInput(f"[{OURS}] must be a table")
    if unknown := [key for key in ours if key not in KEYS]:
        raise InvalidInput(f"[{OURS}] has no key {unknown[0]!r}; it has: {', '.join(KEYS)}")
    given = {key: KEYS[key](f"[{OURS}] {key}", value) for key, value in ours.items()}
    rights = Rights(**{key: given.pop(key) for key in RIGHTS if key in given})
    provider = given.setdefault("provider", "codex")
    # Codex' own key decides where ours is left out, as in the folders that Codex itself reads.
    if "model" not in given and provider == "codex" and "model" in document:
        given["model"] = _text("model", document["model"])
    config, warnings = bounded(document, rights) if provider == "codex" else (document, [])
    if provider != "codex" and rights.any:
        warnings.append(f"write, run and network have no effect: {provider} can only read.")
    return given | {"rights": rights, "config": config, "warnings": tuple(warnings)}


def bounded(config: JSON, rights: Rights) -> tuple[JSON, list[str]]:
    """Codex' configuration within the rights, by dotted keys, and what of it was not granted.

    The rights win over whatever the file asks for: an agent is read-only unless it is told
    otherwise in one place that the page shows.
    """
    dotted, warnings = _dotted(config), []
    asked, sandbox = config.get("sandbox_mode"), _sandbox(config, rights)
    if asked not in (None, sandbox):
        warnings.append(f"sandbox_mode = {asked!r} runs as {sandbox!r}: {OURS} grants no more.")
    if dotted.pop(OWN_SERVER, None) is not None:
        warnings.append(f"{OWN_SERVER} is left out: the tools of the index come within the limits.")
    within: JSON = {
        "sandbox_mode": sandbox,
        # Nobody sits there to be asked.
        "approval_policy": "never",
        "sandbox_workspace_write.network_access": rights.network,
        "web_search": config.get("web_search", "disabled") if rights.network else "disabled",
    }
    if not rights.run:
        within["features.shell_tool"] = False
    return dotted | within, warnings


# The name that our own endpoint has among the servers of a thread.
OWN_SERVER = "mcp_servers.codeinfo"
BARE = re.compile(r"[A-Za-z0-9_-]+")


def _sandbox(config: JSON, rights: Rights) -> str:
    if not rights.write:
        return "read-only"
    every = rights.run and rights.network
    full = every and config.get("sandbox_mode") == "danger-full-access"
    return "danger-full-access" if full else "workspace-write"


def _dotted(config: JSON) -> JSON:
    """Tables taken apart, so that one setting of a table leaves its others alone."""
    dotted: JSON = {}
    for name, value in config.items():
        if not isinstance(value, dict):
            dotted[name] = value
            continue
        for key, inner in value.items():
            dotted[f"{name}.{key if BARE.fullmatch(key) else json.dumps(key)}"] = inner
    return dotted
