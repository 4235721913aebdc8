"""The options of Codex: values, labels and defaults (contract.md §2.2).

Network access and web search are off by default, unlike in the contract: Codex reads private code
and code of unknown authors, and instructions hidden in it could make Codex send data elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.errors import InvalidInput
from apps.core.principal import current
from apps.core.types import JSON


@dataclass(frozen=True)
class CodexFlag:
    """One option.

    name: the field of the request body.
    label: the text on the page.
    default: used if no allowed value is given.
    choices: value → label; empty for a boolean.
    runs_as: the label of what every choice runs as; "": each has its own effect.
    for_staff: True if only staff may switch it on.
    """

    name: str
    label: str
    default: str | bool
    choices: Mapping[str, str] = field(default_factory=dict)
    runs_as: str = ""
    for_staff: bool = False

    def allows(self, value: object) -> bool:
        """Return True if `value` has the type and is one of the choices."""
        if self.choices:
            return isinstance(value, str) and value in self.choices
        return isinstance(value, bool)

    def check(self, value: object) -> None:
        """Raise InvalidInput if the current principal may not choose this value."""
        if not self.allows(value):
            raise InvalidInput(self.rule)
        self.check_right(value)

    def check_right(self, value: object) -> None:
        """Raise InvalidInput FORBIDDEN if only staff may choose this value."""
        if self.for_staff and value not in (None, False) and not current().is_staff:
            raise InvalidInput(f"{self.name} is for staff.", code="FORBIDDEN")

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
    runs_as="Read-only",
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
    runs_as="Never",
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
NETWORK = CodexFlag("networkAccessEnabled", "Enable network access", False, for_staff=True)
WEB_SEARCH = CodexFlag("webSearchEnabled", "Enable web search", False, for_staff=True)

# In the order of validation in POST /chat.
FLAGS = (SANDBOX, APPROVAL, EFFORT, NETWORK, WEB_SEARCH)


def chosen(flags: Mapping[str, Any]) -> JSON:
    """Return a value for every flag: the given one if it is allowed, else the default.

    What only staff may switch on is off for others, whoever stored it with the conversation.
    """
    is_staff = current().is_staff
    return {
        flag.name: flags[flag.name]
        if flag.allows(flags.get(flag.name)) and (is_staff or not flag.for_staff)
        else flag.default
        for flag in FLAGS
    }
