"""What a provider must offer to join the conformance suite (test_conformance.py).

A provider joins by a module beside this one with a `RIG`, and its name in `RIGS` (`__init__.py`). A
rig is

    provider   its id in the registry
    stage      the name of a fixture (in conftest.py) that starts the provider's stand-in, sets the
               settings that lead to it, and gives a `Stage`. It may be shared by many tests.
    plays      what the provider is made to do and all that must come of it: at least one Play for
               each of SCENES (`Play.scene` begins with the scene's name: "thinking in a field")
    lacks      scene → why this provider cannot play it, for those of SCENES that have no Play
    markers    whether its models may write their thinking between markers, in the text
    cuts       rows of models that say PLAIN over a connection that is cut: the first before a word
               of it, each one later than the one before, the last one behind the end
    slow       an answer takes so long to begin that only one play is left at each of its events
    in_turn    the tools of a round run one after the other; else their results come as they end

and a stage

    offer      makes these tools the ones that the next answers may use. For a provider that is not
               handed its tools with the request; others inherit the default
    saying     makes up a model that says these pieces of text, each in a frame of its own
    idle       whether the stand-in makes no answer any more; waits up to 30 s for that to be so

The model of a Play is the script that the stand-in plays. The question is `fakes.QUESTION`, the
tools are `fakes.TOOLS` unless the play offers others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from apps.agents.providers.base import ModelRequest
from apps.retrieval.tools import Tool
from tests.agents.fakes import TOOLS, chat_request

# A text that is said before silence or an error comes, so that it is kept.
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
    """What a provider is made to do, and all that must come of it.

    `text` is the whole visible text, or a tuple of pieces that occur in this order. `tools` has
    the error code of each call, None where it went well.
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
    """The defaults are those of a provider that asks no server and is handed its tools."""

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
        """The first play of a scene."""
        return next(scenario for scenario in self.scenarios if scenario.kind.startswith(kind))
