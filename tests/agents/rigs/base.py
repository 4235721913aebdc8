"""The scenarios of the conformance suite (test_conformance.py), and how a provider joins it.

To add a provider, create a module beside this one with a `RIG`, and add its name to `RIGS`
(`__init__.py`). A Rig has:

    provider        its id in the registry
    backend         the name of a fixture (in conftest.py) that starts the provider's stand-in,
                    configures it and returns a `Backend`; it may be shared by many tests
    scenarios       what the provider does and the expected answer: at least one Scenario of each of
                    KINDS (`Scenario.kind` begins with the kind: "thinking in a field")
    not_applicable  kind → why this provider has no Scenario of it
    markers         whether its models may write reasoning between markers in the text
    cuts            lists of models that send PLAIN over a connection that is cut: the first before
                    any text, each later than the one before, the last after the end
    slow            an answer takes so long to start that only one scenario is closed at each event
    in_turn         the tools of a round run in order; otherwise results come as they finish

A Backend has:

    set_tools       sets the tools of the next answers, for a provider that does not get them with
                    the request; other backends inherit the default
    add_text_model  adds a model that sends these pieces of text, each in one frame; returns its key
    idle            whether the stand-in has ended all answers; waits up to 30 s

The model of a Scenario is the script that the stand-in runs. The message is `fakes.QUESTION`; the
tools are `fakes.TOOLS` unless the scenario has others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from apps.agents.providers.base import ModelRequest
from apps.tools.tool import Tool
from tests.agents.fakes import TOOLS, chat_request

# The text before silence or an error, which must be kept.
HALF = "Half an ans"

KINDS = (
    "text",
    "thinking",
    "one tool",
    "several tools",
    "a tool that fails",
    "an unknown tool",
    "an error before",
    "an error in the middle",
    "a cut connection",
    "an empty answer",
    "10,000 tokens",
    "silence from the start",
    "silence in the middle",
)

End = Literal["finished", "PROVIDER_ERROR", "PROVIDER_TIMEOUT"]
ERROR: End = "PROVIDER_ERROR"
TIMEOUT: End = "PROVIDER_TIMEOUT"
Calls = tuple[tuple[str, str | None], ...]
SEARCHED: Calls = (("VectorSearch", None),)


@dataclass(frozen=True)
class Scenario:
    """What a provider does, and the expected answer.

    kind: begins with one of KINDS.
    model: the script of the stand-in.
    text: the whole visible text, or pieces that occur in this order.
    tools: name and error code of each call; None: success.
    end: "finished", or the code of the failure, with `retryable`.
    """

    kind: str
    model: str
    text: str | tuple[str, ...] = ""
    reasoning: str = ""
    tools: Calls = ()
    end: End = "finished"
    retryable: bool = True
    tools_offered: Sequence[Tool] = TOOLS

    @property
    def request(self) -> ModelRequest:
        return chat_request(self.model, self.tools_offered)


class Backend:
    """The defaults are for a provider without a server that gets its tools with the request."""

    def set_tools(self, tools: Sequence[Tool]) -> None:
        pass

    def add_text_model(self, pieces: Sequence[str]) -> str:
        raise NotImplementedError

    def idle(self) -> bool:
        return True


@dataclass(frozen=True)
class Rig:
    provider: str
    backend: str
    scenarios: Sequence[Scenario]
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    markers: bool = True
    cuts: Sequence[Sequence[str]] = ()
    slow: bool = False
    in_turn: bool = True

    def scenario(self, kind: str) -> Scenario:
        """Return the first scenario of a kind."""
        return next(scenario for scenario in self.scenarios if scenario.kind.startswith(kind))
