"""Turn a request to an agent into the requests of its runs.

Every error is raised here or by the start of the first run, before the caller gets an answer.
"""

import asyncio
import uuid
from dataclasses import dataclass, replace
from itertools import starmap

from channels.db import database_sync_to_async

from apps.agent_runs import definitions
from apps.agent_runs.definitions import AUTO, CODEX, Agent, with_home
from apps.agent_runs.folders import working_folder
from apps.agents.prompts import agent_prompt
from apps.agents.providers import registry
from apps.conversations import rows
from apps.conversations.models import Conversation, Source
from apps.conversations.types import AgentSettings, StartTurn
from apps.core.errors import Unavailable


@dataclass(frozen=True)
class AgentRequest:
    """A request to an agent.

    agent: its name.
    conversation_id: None: a new conversation.
    working_folder: absolute path here or on the host; None: the agent's default.
    source: stored with the conversation and its turns.
    provider, model: who answers; "": as the agent's definition says.
    """

    agent: str
    conversation_id: str | None = None
    working_folder: str | None = None
    source: str = Source.REST
    provider: str = ""
    model: str = ""


async def instruction(request: AgentRequest, text: str) -> StartTurn:
    """The request of the run that answers an instruction (contract.md §7).

    Raises NotFound AGENT_NOT_FOUND, InvalidInput (AGENT_INVALID, UNSUPPORTED_PROVIDER,
    WORKING_FOLDER_INVALID, WORKING_FOLDER_NOT_FOUND, AGENT_MISMATCH), Conflict
    CONVERSATION_ARCHIVED, Unavailable PROVIDER_UNAVAILABLE, AGENTS_UNAVAILABLE.
    """
    agent = await _agent(request.agent)
    return await _turn(request, agent, text)


async def command(request: AgentRequest, name: str) -> tuple[StartTurn, ...]:
    """The requests of a command's steps, in order; they share one lock (`leases`).

    Raises what `instruction` raises, and NotFound COMMAND_NOT_FOUND, InvalidInput COMMAND_INVALID.
    """
    agent = await _agent(request.agent)
    chosen = agent.command(name)
    turn = await _turn(request, agent, chosen.steps[0])
    assert turn.agent is not None
    settings = replace(turn.agent, command_run=str(uuid.uuid4()))

    def step(number: int, text: str) -> StartTurn:
        command = {"name": chosen.name, "stepIndex": number, "totalSteps": len(chosen.steps)}
        return replace(turn, message=text, agent=replace(settings, command=command))

    return tuple(starmap(step, enumerate(chosen.steps, 1)))


async def _agent(name: str) -> Agent:
    return (await asyncio.to_thread(definitions.agent_named, name)).usable()


async def _turn(request: AgentRequest, agent: Agent, text: str) -> StartTurn:
    folder = await database_sync_to_async(working_folder)(request.working_folder, agent)
    has_docs = agent.project_docs and folder is not None
    docs = await asyncio.to_thread(definitions.project_docs, folder) if has_docs else ""
    conversation_id = request.conversation_id or str(uuid.uuid4())
    conversation = await _open_conversation(conversation_id, agent)
    agent = await _with_provider(agent, request.provider, conversation)
    model = request.model or await _model(agent, conversation.model if conversation else "")
    return StartTurn(
        conversation_id=conversation_id,
        message=text,
        provider=agent.provider,
        model=model,
        source=request.source,
        agent=AgentSettings(
            name=agent.name,
            system_prompt=agent_prompt("\n\n".join(filter(None, (agent.system_prompt, docs)))),
            tools=agent.tools,
            repositories=agent.repositories,
            home=agent.home,
            folder=folder,
            rights=agent.rights,
            # Codex reads the model from its configuration.
            config={**agent.config, "model": model} if agent.provider == CODEX else {},
        ),
    )


async def _with_provider(agent: Agent, requested: str, conversation: Conversation | None) -> Agent:
    """The agent with the provider that answers: the requested one, else the definition's.

    For AUTO that of the conversation, else the first available. The definition's model applies to
    its own provider only. Raises InvalidInput UNSUPPORTED_PROVIDER.
    """
    provider = requested or agent.provider
    if provider == AUTO:
        provider = conversation.provider if conversation else await registry.preselected()
    if provider == agent.provider:
        return agent
    provider = registry.get_provider(provider).id
    return await asyncio.to_thread(with_home, replace(agent, provider=provider, model=""))


@database_sync_to_async
def _open_conversation(conversation_id: str, agent: Agent) -> Conversation | None:
    """The conversation if it exists. Raises what `rows.check_open` raises."""
    conversation = Conversation.objects.filter(pk=conversation_id).first()
    if conversation is not None:
        rows.check_open(conversation, agent.name)
    return conversation


async def _model(agent: Agent, last: str) -> str:
    """The model of the definition, else the last of the conversation, else the provider's first."""
    if agent.model:
        return agent.model
    try:
        models = [model.key for model in await registry.get_provider(agent.provider).models()]
    except Unavailable as error:
        details = {"provider": agent.provider}
        raise Unavailable(error.message, code="PROVIDER_UNAVAILABLE", details=details) from error
    return last if last in models else models[0]
