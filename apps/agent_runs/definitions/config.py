"""Parse an agent's `config.toml`: keys of codeinfo in `[codeinfo]`, the others are Codex's."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from apps.agent_runs.definitions.types import AUTO, CODEX, Rights
from apps.core.config import PROVIDERS
from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.retrieval.tools import TOOLS

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
    if unknown := [each for each in names if each not in known]:
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


KEYS: Mapping[str, Check] = {
    "provider": _provider,
    "model": _text,
    "tools": _tools,
    "repositories": _repositories,
    "write": _boolean,
    "run": _boolean,
    "network": _boolean,
}
RIGHTS = ("write", "run", "network")


def parse(text: str) -> JSON:
    """The fields of an Agent in `config.toml`. Raises InvalidInput.

    Unknown keys in `[codeinfo]` are refused: a misspelled limit would have no effect.
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
    fields = {key: KEYS[key](f"[{OURS}] {key}", value) for key, value in ours.items()}
    rights = Rights(**{key: fields.pop(key) for key in RIGHTS if key in fields})
    provider = fields.setdefault("provider", CODEX)
    # Without `model` in [codeinfo], Codex's own key applies.
    if "model" not in fields and provider == CODEX and "model" in document:
        fields["model"] = _text("model", document["model"])
    if provider == AUTO and fields.pop("model", ""):
        raise InvalidInput(f"[{OURS}] model needs a provider other than {AUTO}")
    codex = provider in (CODEX, AUTO)
    # Codex may be chosen for every agent on the page: where the file names another provider it can
    # only read.
    config, warnings = bounded(document, rights) if codex else bounded({}, Rights())
    if not codex and rights.any:
        warnings.append(f"write, run and network have no effect: {provider} can only read.")
    return fields | {"rights": rights, "config": config, "warnings": tuple(warnings)}


def bounded(config: JSON, rights: Rights) -> tuple[JSON, list[str]]:
    """Limit a Codex configuration to the rights. Returns it by dotted key, and warnings.

    The rights override the file, so `[codeinfo]`, which the page shows, is the only place that
    grants them.
    """
    dotted, warnings = _dotted(config), []
    requested, sandbox = config.get("sandbox_mode"), _sandbox(config, rights)
    if requested not in (None, sandbox):
        warnings.append(f"sandbox_mode = {requested!r} runs as {sandbox!r}: {OURS} grants no more.")
    if dotted.pop(OWN_SERVER, None) is not None:
        warnings.append(f"{OWN_SERVER} is left out: the tools of the index come within the limits.")
    within: JSON = {
        "sandbox_mode": sandbox,
        # No user can answer an approval request.
        "approval_policy": "never",
        "sandbox_workspace_write.network_access": rights.network,
        "web_search": config.get("web_search", "disabled") if rights.network else "disabled",
    }
    if not rights.run:
        within["features.shell_tool"] = False
    return dotted | within, warnings


# The name of codeinfo's endpoint among the MCP servers of a thread.
OWN_SERVER = "mcp_servers.codeinfo"
BARE = re.compile(r"[A-Za-z0-9_-]+")


def _sandbox(config: JSON, rights: Rights) -> str:
    if not rights.write:
        return "read-only"
    every = rights.run and rights.network
    full = every and config.get("sandbox_mode") == "danger-full-access"
    return "danger-full-access" if full else "workspace-write"


def _dotted(config: JSON) -> JSON:
    """Flatten tables to dotted keys, so that setting one key keeps the others."""
    dotted: JSON = {}
    for name, value in config.items():
        if not isinstance(value, dict):
            dotted[name] = value
            continue
        for key, inner in value.items():
            dotted[f"{name}.{key if BARE.fullmatch(key) else json.dumps(key)}"] = inner
    return dotted
