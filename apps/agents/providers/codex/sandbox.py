"""What Codex may do on this machine, as its configuration.

Codex gives a model the tools of an environment: a shell, patches, images. A thread without rights
has no environment, so it has none of them. Programs of other threads run in Codex's sandbox, under
a permission profile that lists what they can read. Everything else does not exist for them: the
data folder, the homes of Codex, keys, homes of users.

A folder that Codex works in is repository content. Codex would run the MCP servers and hooks of its
`.codex` folder outside of the sandbox if it trusted the folder, and follow its AGENTS.md: it trusts
each folder that it may write to, unless its configuration says otherwise.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from apps.agents.providers.base import Rights
from apps.core.config import BASE_DIR, config
from apps.core.types import JSON

PROFILE = "codeinfo"
# For every process, whatever the settings of its home say. An agent's own settings come after them.
OVERRIDES = {
    "check_for_update_on_startup": "false",
    "analytics.enabled": "false",
    # Programs of the home's owner, which would get the questions of every user.
    "notify": "[]",
    "features.hooks": "false",
    # Other agents, of both kinds: each would go on asking the model after the answer.
    "agents.enabled": "false",
    "features.multi_agent_v2.max_concurrent_threads_per_session": "1",
    "features.goals": "false",
    "features.sleep_tool": "false",
    "features.image_generation": "false",
    # Accounts at other services that the login of Codex is connected with.
    "features.apps": "false",
    "features.plugins": "false",
    "skills.bundled.enabled": "false",
    "skills.include_instructions": "false",
    "project_doc_max_bytes": "0",
}
# Keys of an agent's settings that only its rights decide. All keys below one of them count too.
DECIDED = (
    "agents",
    "approval_policy",
    "approvals_reviewer",
    "default_permissions",
    "features.multi_agent",
    "features.multi_agent_v2",
    "features.shell_tool",
    "permissions",
    "profile",
    "profiles",
    "project_doc_max_bytes",
    "project_root_markers",
    "projects",
    "sandbox_mode",
    "sandbox_workspace_write",
    "shell_environment_policy.inherit",
    "skills",
    "web_search",
)


def has_environment(rights: Rights) -> bool:
    """Return True if the model gets tools that read, write or run on this machine."""
    return rights.write or rights.run


def selected(rights: Rights) -> JSON:
    """Return the parameter of `thread/start` and `thread/resume` that selects the sandbox."""
    return {"sandbox": "danger-full-access"} if rights.unlimited else {"permissions": PROFILE}


def thread_config(
    folder: Path, rights: Rights, settings: Mapping[str, Any], web_search: str
) -> JSON:
    """Return the configuration of a thread: an agent's `settings`, and the limits.

    settings: by dotted key. Keys in DECIDED are left out.
    """
    limits: JSON = {
        "web_search": web_search,
        "features.shell_tool": rights.run,
        # Programs do not inherit the tokens that are in Codex's own environment.
        "shell_environment_policy.inherit": "core",
        # The working folder only, not the repository above it.
        "project_root_markers": [],
        "projects": {str(folder): {"trust_level": "untrusted"}},
    }
    if not rights.unlimited:
        network = {"enabled": rights.network}
        profile = {"filesystem": dict(_paths(folder, rights)), "network": network}
        limits |= {"permissions": {PROFILE: profile}, "default_permissions": PROFILE}
    return {key: value for key, value in settings.items() if not is_decided(key)} | limits


def is_decided(key: str) -> bool:
    """Return True if a key of an agent's settings has no effect, because its rights decide."""
    return any(f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.") for name in DECIDED)


def _protected_paths() -> tuple[Path, ...]:
    """Return the paths of codeinfo and Codex that no program of an agent may read."""
    known = config()
    paths = (known.data_dir, known.codex_home, known.host_codex_home, BASE_DIR / ".env")
    return tuple(path.resolve() for path in paths)


def _paths(folder: Path, rights: Rights) -> Iterator[tuple[str, str]]:
    """Yield paths, and what programs may do there. Of nested paths, the inner one counts."""
    from codex_cli_bin import bundled_codex_path  # noqa: PLC0415 - an optional package

    yield ":minimal", "read"  # what programs of the system need: /usr, /bin, /lib, /etc
    yield str(bundled_codex_path().parent.parent), "read"  # the sandbox starts Codex's own program
    roots = (folder, *rights.readable)
    for path in rights.readable:
        yield str(path), "read"
    yield str(folder), "write" if rights.write else "read"
    for path in _protected_paths():
        if path.exists() and any(path.is_relative_to(root) for root in roots):
            yield str(path), "deny"
    agents = config().agents_home.resolve()
    if rights.write and agents.exists() and agents.is_relative_to(folder):
        yield str(agents), "read"  # an agent does not give itself rights
