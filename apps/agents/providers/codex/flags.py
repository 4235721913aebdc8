"""What a user may tell Codex, with values, labels and defaults (docs/contract.md §2.2).

Network and web search are off by default, unlike in the contract: Codex reads private code and code
of unknown authors, and instructions hidden in it could make Codex send something elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.types import JSON


@dataclass(frozen=True)
class Flag:
    """One flag. `choices` maps values to labels; without any it is a boolean."""

    name: str
    label: str
    default: str | bool
    choices: Mapping[str, str] = field(default_factory=dict)

    def allows(self, value: object) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        return isinstance(value, bool)

    @property
    def rule(self) -> str:
        """What is wrong with a value that is not allowed, in the contract's words."""
        if not self.choices:
            return f"{self.name} must be a boolean"
        return f"{self.name} must be one of: {', '.join(self.choices)}"

    def read(self, posted: str | None) -> str | bool:
        """A form's value; a box that is not ticked is not posted at all."""
        if not self.choices:
            return posted is not None
        return self.default if posted is None else posted


SANDBOX = Flag(
    "sandboxMode",
    "Sandbox mode",
    "workspace-write",
    {
        "read-only": "Read-only",
        "workspace-write": "Workspace write",
        "danger-full-access": "Danger full access",
    },
)
APPROVAL = Flag(
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
# What Codex knows; which of them a model takes, its entry in the list of models says.
EFFORT = Flag(
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
NETWORK = Flag("networkAccessEnabled", "Enable network access", False)
WEB_SEARCH = Flag("webSearchEnabled", "Enable web search", False)

# In the order in which POST /chat checks them.
FLAGS = (SANDBOX, APPROVAL, EFFORT, NETWORK, WEB_SEARCH)
DEFAULTS: JSON = {flag.name: flag.default for flag in FLAGS}


def chosen(flags: Mapping[str, Any]) -> JSON:
    """Every flag: as chosen where that is allowed, else its default."""
    return {
        flag.name: flags[flag.name] if flag.allows(flags.get(flag.name)) else flag.default
        for flag in FLAGS
    }
