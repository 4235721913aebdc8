"""The options of Codex: values, labels and defaults (contract.md §2.2).

Network access and web search are off by default, unlike in the contract: Codex reads private code
and code of unknown authors, and instructions hidden in it could make Codex send data elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.types import JSON


@dataclass(frozen=True)
class CodexFlag:
    """One option.

    name: the field of the request body.
    label: the text on the page.
    default: used if no allowed value is given.
    choices: value → label; empty for a boolean.
    """

    name: str
    label: str
    default: str | bool
    choices: Mapping[str, str] = field(default_factory=dict)

    def allows(self, value: object) -> bool:
        """Return True if `value` has the type and is one of the choices."""
        if self.choices:
            return isinstance(value, str) and value in self.choices
        return isinstance(value, bool)

    @property
    def rule(self) -> str:
        """The error message for a value that is not allowed (contract.md §2.2)."""
        if not self.choices:
            return f"{self.name} must be a boolean"
        return f"{self.name} must be one of: {', '.join(self.choices)}"

    def read(self, posted: str | None) -> str | bool:
        """Read a form field. None means an unchecked checkbox, which browsers do not send."""
        if not self.choices:
            return posted is not None
        return self.default if posted is None else posted


SANDBOX = CodexFlag(
    "sandboxMode",
    "Sandbox mode",
    "workspace-write",
    {
        "read-only": "Read-only",
        "workspace-write": "Workspace write",
        "danger-full-access": "Danger full access",
    },
)
APPROVAL = CodexFlag(
    "approvalPolicy",
    "Approval policy",
    "on-failure",
    {
        "never": "Never (auto-approve)",
        "on-request": "On request",
        "on-failure": "On failure",
        "untrusted": "Untrusted",
    },
)
# All efforts of Codex. `Model.efforts` lists those that a model accepts.
EFFORT = CodexFlag(
    "modelReasoningEffort",
    "Reasoning effort",
    "high",
    {
        "low": "Low",
        "medium": "Medium",
        "high": "High",
        "xhigh": "Extra high",
        "max": "Max",
        "ultra": "Ultra",
    },
)
NETWORK = CodexFlag("networkAccessEnabled", "Enable network access", False)
WEB_SEARCH = CodexFlag("webSearchEnabled", "Enable web search", False)

# In the order of validation in POST /chat.
FLAGS = (SANDBOX, APPROVAL, EFFORT, NETWORK, WEB_SEARCH)
DEFAULTS: JSON = {flag.name: flag.default for flag in FLAGS}


def chosen(flags: Mapping[str, Any]) -> JSON:
    """Return a value for every flag: the given one if it is allowed, else the default."""
    return {
        flag.name: flags[flag.name] if flag.allows(flags.get(flag.name)) else flag.default
        for flag in FLAGS
    }
