"""The rig of each provider, in the order of the registry."""

from tests.agents.rigs import builtin, codex, lmstudio, openai
from tests.agents.rigs.base import Rig

RIGS: tuple[Rig, ...] = (openai.RIG, lmstudio.RIG, codex.RIG, builtin.RIG)
