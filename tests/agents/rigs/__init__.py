"""Each provider with the stage it plays on, in the order of the registry."""

from tests.agents.rigs import builtin, openai
from tests.agents.rigs.base import Rig

RIGS: tuple[Rig, ...] = (openai.RIG, builtin.RIG)
