"""Read the folders of agents. They are read on each call, so an edit applies to the next run."""

import os
import re
from dataclasses import replace
from pathlib import Path

from apps.agent_runs.definitions import commands
from apps.agent_runs.definitions.config import parse as parse_config
from apps.agent_runs.definitions.types import Agent, Command
from apps.agents.providers.codex.home import prepare
from apps.core.config import config
from apps.core.errors import CodeinfoError, InvalidInput, NotFound, Unavailable
from apps.core.values.surrogates import encodable
from apps.index.root_directory import read_file, reason_of

CONFIG, DESCRIPTION, PROMPT = "config.toml", "description.md", "system_prompt.txt"
PROJECT_DOCS = "AGENTS.md"
COMMANDS, COMMAND = "commands", ".json"
# Larger files are not prompts.
MAX_BYTES = 100_000
NAME = re.compile(r"\w[\w .-]{0,63}")
BAD_NAME = "A name is 1-64 letters, digits, spaces and . _ - and begins with a letter or digit."


def home() -> Path:
    """The real path of CODEINFO_AGENTS_HOME.

    Raises Unavailable AGENTS_UNAVAILABLE if it does not exist or cannot be read.
    """
    path = config().agents_home
    try:
        real_path = path.resolve(strict=True)
        os.scandir(real_path).close()
    except OSError as error:
        raise Unavailable(
            f"The agents' folder {path} cannot be read: {error.strerror}.",
            code="AGENTS_UNAVAILABLE",
            retryable=False,
        ) from error
    return real_path


def all_agents() -> tuple[Agent, ...]:
    """Every agent, sorted by name; invalid ones have a `problem`.

    Raises Unavailable AGENTS_UNAVAILABLE.
    """
    return tuple(_read(folder) for folder in _folders(home()))


def agent_named(name: str) -> Agent:
    """One agent, also if invalid.

    Raises NotFound AGENT_NOT_FOUND, Unavailable AGENTS_UNAVAILABLE.
    """
    for folder in _folders(home()):
        if folder.name == name:
            return _read(folder)
    raise NotFound("Agent not found", code="AGENT_NOT_FOUND")


def _folders(where: Path) -> list[Path]:
    """The direct subfolders and links to folders, sorted by name."""
    subfolders = (Path(entry.path) for entry in os.scandir(where) if entry.is_dir())
    return sorted(path for path in subfolders if not path.name.startswith((".", "__")))


def _read(folder: Path) -> Agent:
    name = encodable(folder.name)
    try:
        if not NAME.fullmatch(name):
            raise InvalidInput(BAD_NAME)
        return with_home(_agent(name, folder))
    except (CodeinfoError, OSError) as error:
        return Agent(name, problem=_why(error))


def with_home(agent: Agent) -> Agent:
    """Prepare the agent's Codex home, with a copy of the chat's login if it has none.

    Returns the agent, with a warning if that failed.
    """
    try:
        if agent.home is not None:
            prepare(agent.home)
    except OSError as error:
        warning = f"Its Codex home {agent.home} cannot be made ready: {error.strerror}."
        return replace(agent, warnings=(*agent.warnings, warning))
    return agent


def _agent(name: str, folder: Path) -> Agent:
    fields = parse_config(text_of(folder, CONFIG))
    return Agent(
        name=name,
        description=_optional(folder, DESCRIPTION),
        system_prompt=_optional(folder, PROMPT),
        commands=tuple(_commands(folder)),
        **fields,
    )


def text_of(folder: Path, rel_path: str) -> str:
    """The text of a file.

    Raises NotFound; InvalidInput for links and for large, unreadable or binary files.
    """
    data = read_file(folder, rel_path, MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"No UTF-8: {rel_path}") from error
    if "\0" in text:
        raise InvalidInput(f"It holds a NUL: {rel_path}")
    return text


def project_docs(folder: Path) -> str:
    """The AGENTS.md of a working folder; "" if there is none. Raises InvalidInput as `text_of`."""
    return _optional(folder, PROJECT_DOCS)


def _optional(folder: Path, rel_path: str) -> str:
    try:
        return text_of(folder, rel_path).strip()
    except NotFound:
        return ""


def _commands(folder: Path) -> list[Command]:
    within = folder / COMMANDS
    if within.is_symlink():
        raise InvalidInput(f"Symbolic link: {COMMANDS}")
    if not within.is_dir():
        return []
    files = sorted(entry.name for entry in os.scandir(within) if entry.name.endswith(COMMAND))
    return [_command(folder, file) for file in files]


def _command(folder: Path, file: str) -> Command:
    name = encodable(file.removesuffix(COMMAND))
    try:
        if not NAME.fullmatch(name) or ".." in name:
            raise InvalidInput(BAD_NAME)
        return commands.parse(name, text_of(folder, f"{COMMANDS}/{file}"))
    except CodeinfoError as error:
        return Command(name, problem=error.message)


def _why(error: CodeinfoError | OSError) -> str:
    return error.message if isinstance(error, CodeinfoError) else reason_of(error)
