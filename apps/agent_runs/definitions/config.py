"""Parse an agent's `config.toml`: keys of codeinfo in `[codeinfo]`, the others are Codex's."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.agent_runs.definitions.types import AUTO, CODEX
from apps.agents.providers.base import Rights
from apps.agents.providers.codex.wire import OWN_SERVER
from apps.core.config import PROVIDERS
from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.tools.tools import TOOLS

OURS = "codeinfo"
# check(name, value): the value of a key. Raises InvalidInput.
Check = Callable[[str, Any], Any]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 255:
        raise InvalidInput(f"{name} must be a text of 1-255 characters")
    return value.strip()


def _provider(name: str, value: Any) -> str:
    if value not in (*PROVIDERS, AUTO):
        raise InvalidInput(f"{name} must be one of: {', '.join((*PROVIDERS, AUTO))}")
    return str(value)


def _names(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
        raise InvalidInput(f"{name} must be a list of names")
    return tuple(dict.fromkeys(value))


def _tools(name: str, value: Any) -> tuple[str, ...]:
    names, known = _names(name, value), [tool.name for tool in TOOLS]
    if unknown := [tool_name for tool_name in names if tool_name not in known]:
        raise InvalidInput(f"{name}: there is no {unknown[0]!r}; there are: {', '.join(known)}")
    return names


def _repositories(name: str, value: Any) -> tuple[str, ...]:
    names = _names(name, value)
    if not names:
        raise InvalidInput(f"{name} must name one at least; without the key all can be searched")
    return names


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false")
    return value


def _folders(name: str, value: Any) -> tuple[Path, ...]:
    paths = tuple(Path(text).expanduser() for text in _names(name, value))
    home = Path.home()
    for path in paths:
        if not path.is_absolute():
            raise InvalidInput(f"{name}: {path} must be an absolute path, or begin with ~")
        if home.is_relative_to(path.resolve()):
            raise InvalidInput(f"{name}: {path} contains your home folder; name folders in it")
    return tuple(path.resolve() for path in paths)


KEYS: Mapping[str, Check] = {
    "provider": _provider,
    "model": _text,
    "tools": _tools,
    "repositories": _repositories,
    "write": _boolean,
    "run": _boolean,
    "network": _boolean,
    "readable": _folders,
    "project_docs": _boolean,
    "users": _boolean,
}
RIGHTS = ("write", "run", "network", "readable")


def parse(text: str) -> JSON:
    """The fields of an Agent in `config.toml`. Raises InvalidInput.

    Unknown keys in `[codeinfo]` are refused: a misspelled limit would have no effect.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"config.toml is not valid TOML: {error}") from error
    ours = document.pop(OURS, {})
    if not isinstance(ours, dict):
        raise InvalidInput(f"[{OURS}] must be a table")
    if unknown := [key for key in ours if key not in KEYS]:
        raise InvalidInput(f"[{OURS}] has no key {unknown[0]!r}; it has: {', '.join(KEYS)}")
    fields = {key: KEYS[key](f"[{OURS}] {key}", value) for key, value in ours.items()}
    rights = Rights(**{key: fields.pop(key) for key in RIGHTS if key in fields})
    provider = fields.setdefault("provider", CODEX)
    # Without `model` in [codeinfo], Codex's own key applies.
    if "model" not in fields and provider == CODEX and "model" in document:
        fields["model"] = _text("model", document["model"])
    if provider == AUTO and fields.pop("model", ""):
        raise InvalidInput(f"[{OURS}] model needs a provider other than {AUTO}")
    fields["for_users"] = fields.pop("users", False)
    if provider in (CODEX, AUTO):
        config, rights, warnings = _limited(document, rights)
    else:
        # Codex may be chosen for every agent on the page: where the file names another provider it
        # can only read.
        config, warnings = {}, []
        if rights.any:
            warnings.append(f"write, run and network have no effect: {provider} can only read.")
        rights = Rights()
    return fields | {"rights": rights, "config": config, "warnings": tuple(warnings)}


def _limited(config: JSON, rights: Rights) -> tuple[JSON, Rights, list[str]]:
    """Limit a Codex configuration to the rights. Returns it by dotted key, the rights and warnings.

    `[codeinfo]`, which the page shows, is the only place that grants rights.
    """
    dotted, warnings = _dotted(config), list[str]()
    requested = dotted.pop("sandbox_mode", None)
    rights = replace(
        rights,
        unlimited=requested == UNLIMITED and rights.write and rights.run and rights.network,
    )
    sandbox = _sandbox(rights)
    if requested not in (None, sandbox):
        warnings.append(f"sandbox_mode = {requested!r} runs as {sandbox!r}: {OURS} grants no more.")
    servers = dotted.get("mcp_servers", {})
    if isinstance(servers, dict) and servers.pop(OWN_SERVER, None) is not None:
        name = f"mcp_servers.{OWN_SERVER}"
        warnings.append(f"{name} is left out: the tools of the index come within the limits.")
    return dotted, rights, warnings


UNLIMITED = "danger-full-access"
BARE = re.compile(r"[A-Za-z0-9_-]+")


def _sandbox(rights: Rights) -> str:
    if rights.unlimited:
        return UNLIMITED
    return "workspace-write" if rights.write else "read-only"


def _dotted(config: JSON) -> JSON:
    """Flatten tables to dotted keys, so that setting one key keeps the others.

    MCP servers stay a table: Codex reads no quotes in a dotted key.
    """
    dotted: JSON = {}
    for name, value in config.items():
        if not isinstance(value, dict) or name == "mcp_servers":
            dotted[name] = value
            continue
        for key, inner in value.items():
            dotted[f"{name}.{key if BARE.fullmatch(key) else json.dumps(key)}"] = inner
    return dotted
