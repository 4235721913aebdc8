"""What a model can do through the real Codex binary if it does whatever a text tells it."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from codex_cli_bin import bundled_codex_path

from apps.agents.events import ThreadNamed, ToolStarted, TurnFinished
from apps.agents.loop import run
from apps.agents.messages import Message
from apps.agents.providers.base import ModelRequest, Rights
from apps.agents.providers.codex import sandbox, work_folder
from apps.agents.providers.codex.provider import CodexProvider
from apps.agents.providers.codex.server import server_at
from apps.agents.providers.codex.turn import Opened
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.principal import Principal, acting_as
from tests.agents.codex.orders import (
    HARMLESS,
    LIST_NESTED,
    REFUSED,
    SPAWN,
    Order,
    answers,
    attack,
    offered,
)
from tests.agents.fakes import TOOLS, RecordedAnswer, chat_request, record
from tests.agents.rigs.codex import CodexBackend
from tests.stand_ins.mcp_server import MCPStandIn
from tests.stand_ins.openai_scripts import Script
from tests.stand_ins.responses_scripts import OBEDIENT, end, own, say
from tests.stand_ins.responses_server import ResponsesStandIn, write_login
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PROVIDER = CodexProvider()
USER = Principal("user", 1)
NOBODY = 65534
# Models of each kind that Codex lists: one that is given `exec` only, and one without it.
IN_EXEC, DIRECT = "gpt-6.1-sol", "gpt-5.5"


@pytest.fixture(scope="module")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodexBackend]:
    """Codex with a login, so that it lists its own models. Each does what it is told."""
    home = tmp_path_factory.mktemp("lender") / "codex"
    with ResponsesStandIn() as api, MCPStandIn() as mcp:
        write_login(home, api.url)
        settings = (home / "config.toml").read_text()
        # Its owner's own server, which would run for everybody who asks.
        settings += f'\n[mcp_servers.owners]\ncommand = "touch"\nargs = ["{home.parent}/started"]\n'
        (home / "config.toml").write_text(settings)
        mcp.tools = TOOLS
        yield CodexBackend(home, api, mcp)
        server_at(home).close()


@pytest.fixture
def codex(lender: CodexBackend, configure: Callable[..., None], tmp_path: Path) -> CodexBackend:
    configure(
        mcp_force_codex="",
        codex_home=lender.home,
        codex_workdir=tmp_path / "work",
        data_dir=tmp_path / "data",
        agents_home=tmp_path / "agents",
        mcp_url=lender.mcp.url,
        mcp_token="CANARY-token",
    )
    return lender


@pytest.fixture
def folder() -> Iterator[Path]:
    """A working folder outside of /tmp, where nothing is writable by chance."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name).resolve()


async def tell(codex: CodexBackend, request: ModelRequest, *orders: Order) -> RecordedAnswer:
    """Have the model of a request carry out `orders`, one after the other."""
    codex.api.scripts[request.model] = OBEDIENT
    messages = (request.messages[0], Message("user", json.dumps(orders)))
    return await record(PROVIDER, replace(request, messages=messages))


def agent(codex: CodexBackend, model: str, folder: Path | None, **rights: Any) -> ModelRequest:
    home = codex.home / "agents" / "keeper"
    settings = {"model": model}
    request = chat_request(model)
    return replace(request, home=home, folder=folder, rights=Rights(**rights), config=settings)


@pytest.fixture
def keeper(codex: CodexBackend) -> Iterator[None]:
    yield
    server_at(codex.home / "agents" / "keeper").close()


def shell(model: str, command: str) -> Order:
    """Return the order to run a command, in the way that the model has."""
    arguments = {"cmd": command, "yield_time_ms": 1_000}
    if model == DIRECT:
        return ("own", "exec_command", arguments)
    return ("script", f"text((await tools.exec_command({json.dumps(arguments)})).output)")


async def listed_models() -> list[str]:
    return [model.key for model in await PROVIDER.models()]


async def test_no_model_of_the_chat_is_offered_a_tool_of_this_machine(codex: CodexBackend) -> None:
    models = await listed_models()
    assert {IN_EXEC, DIRECT} <= set(models)
    for model in models:
        await tell(codex, chat_request(model), LIST_NESTED)
        body = codex.api.requests[-1].body
        # Some models look for our tools first.
        assert re.search("mcp__codeinfo|tool_search", json.dumps(body)), model
        assert offered(body) <= HARMLESS, model


async def test_whatever_a_model_of_the_chat_tries_is_refused(
    codex: CodexBackend, folder: Path
) -> None:
    orders = attack(str(folder / "planted"))
    for model in await listed_models():
        before = len(codex.api.requests)
        flags = {"sandboxMode": "danger-full-access", "networkAccessEnabled": True}
        recorded = await tell(codex, replace(chat_request(model), flags=flags), *orders)
        assert isinstance(recorded.end, TurnFinished), (model, recorded.end)
        assert len(answers(codex.api)) == len(orders)
        for order, answer in zip(orders, answers(codex.api), strict=True):
            assert REFUSED.search(answer), (model, order, answer)
        assert len(codex.api.requests) == before + len(orders) + 1, "no other agent asked"
    assert not os.listdir(folder)
    assert not os.listdir(config().codex_workdir), "work folders are removed"
    assert not (codex.home.parent / "started").exists(), "a server of the home's owner ran"


@pytest.mark.parametrize("model", [IN_EXEC, DIRECT])
@pytest.mark.usefixtures("keeper")
async def test_an_agent_without_rights_gets_no_more_than_the_chat(
    codex: CodexBackend, folder: Path, model: str
) -> None:
    orders = attack(str(folder / "planted"))
    await tell(codex, agent(codex, model, folder), LIST_NESTED, *orders)
    assert offered(codex.api.requests[-1].body) <= HARMLESS
    assert all(map(REFUSED.search, answers(codex.api)[1:]))
    assert not os.listdir(folder)


@pytest.mark.parametrize("model", [IN_EXEC, DIRECT])
@pytest.mark.usefixtures("keeper")
async def test_programs_of_an_agent_read_only_the_system_and_the_working_folder(
    codex: CodexBackend, folder: Path, model: str, configure: Callable[..., None]
) -> None:
    """The data folder is in the working folder, as in a checkout."""
    configure(data_dir=folder / "data", agents_home=folder / "agents")
    for name in ("data", "agents"):
        (folder / name).mkdir()
    (folder / "data" / "server.json").write_text("CANARY-staff")
    (folder / "agents" / "config.toml").write_text("x")
    (codex.home / "auth.json").chmod(0o644)
    paths = [folder / "data/server.json", codex.home / "auth.json", Path.home(), "/home", "/tmp"]
    read = [shell(model, f"ls {path} || true; cat {path} 2>&1 || true") for path in paths]
    orders = [
        *read,
        shell(model, "cat /proc/*/environ | tr '\\0' '\\n'; env"),
        shell(model, "echo hello > made; cat made; echo x > agents/config.toml; mkdir agents/new"),
        shell(model, "mkdir -p .git/hooks .codex && echo x > .git/hooks/x && echo x > .codex/y"),
    ]
    await tell(codex, agent(codex, model, folder, run=True, write=True), *orders)
    *reads, environment, written, special = answers(codex.api)
    for path, answer in zip(paths, reads, strict=True):
        assert "Permission denied" in answer or "No such file" in answer, (path, answer)
    assert "CANARY" not in "".join(answers(codex.api))
    assert "PATH=" in environment
    assert "hello" in written
    assert "Read-only file system" in written
    assert (folder / "agents" / "config.toml").read_text() == "x"
    assert [path.name for path in (folder / "agents").iterdir()] == ["config.toml"]
    assert "Read-only file system" in special


@pytest.mark.parametrize("model", [IN_EXEC, DIRECT])
@pytest.mark.usefixtures("keeper")
async def test_files_of_the_working_folder_are_neither_run_nor_followed(
    codex: CodexBackend, folder: Path, model: str
) -> None:
    plant(folder)
    await tell(codex, agent(codex, model, folder / "inner", write=True, run=True))
    body = json.dumps(codex.api.requests[-1].body)
    assert "CANARY" not in body
    assert not (folder / "started").exists()
    for home in (codex.home, codex.home / "agents" / "keeper"):
        assert "trusted" not in (home / "config.toml").read_text()


def plant(folder: Path) -> None:
    """Write into a repository everything that Codex reads or runs in a trusted one."""
    started = f"touch {folder}/started"
    hook = [{"hooks": [{"type": "command", "command": started}]}]
    files = {
        "AGENTS.md": "CANARY-docs",
        ".codex/config.toml": (
            'developer_instructions = "CANARY-instructions"\n'
            f'notify = ["sh", "-c", "{started}"]\n'
            f'[mcp_servers.planted]\ncommand = "sh"\nargs = ["-c", "{started}"]\n'
        ),
        ".codex/hooks.json": json.dumps(
            {"hooks": {"SessionStart": hook, "UserPromptSubmit": hook}}
        ),
        ".agents/skills/planted/SKILL.md": "---\nname: planted\ndescription: CANARY-skill\n---\nx",
    }
    for where in (folder, folder / "inner"):
        for name, text in files.items():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


@pytest.mark.usefixtures("keeper")
async def test_each_answer_without_a_folder_has_a_new_empty_one(codex: CodexBackend) -> None:
    """What an answer writes there is gone before the next one reads it, in the same thread, too."""
    where = [shell(DIRECT, "pwd; ls -a; echo CANARY > AGENTS.md")]
    first = await tell(codex, agent(codex, DIRECT, None, write=True, run=True), *where)
    (one,) = answers(codex.api)
    thread = next(e.thread_id for e in first.events if isinstance(e, ThreadNamed))
    again = replace(agent(codex, DIRECT, None, write=True, run=True), flags={"threadId": thread})
    second = await tell(codex, again, *where)
    assert thread == next(e.thread_id for e in second.events if isinstance(e, ThreadNamed))
    (two,) = answers(codex.api)
    folders = {text.split("turn-")[1].split("\\n")[0] for text in (one, two)}
    assert len(folders) == 2
    assert "AGENTS.md" not in two
    assert not os.listdir(config().codex_workdir)


def sleeping(seconds: int) -> bool:
    """Whether a program that a test has started is still there."""
    command = f"sleep\0{seconds}\0".encode()
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:  # It has just ended.
            continue
    return command in lines


@pytest.mark.parametrize("model", [IN_EXEC, DIRECT])
@pytest.mark.usefixtures("keeper")
async def test_programs_end_with_the_answer_that_started_them(
    codex: CodexBackend, folder: Path, model: str
) -> None:
    seconds = 40_000 + os.getpid()
    orders = [
        shell(model, f"nohup setsid sleep {seconds} > /dev/null 2>&1 & sleep 0.1"),
        shell(model, f"sleep {seconds}"),
    ]
    recorded = await tell(codex, agent(codex, model, folder, run=True), *orders)
    assert isinstance(recorded.end, TurnFinished)
    await asyncio.to_thread(wait_until, lambda: not sleeping(seconds))


@pytest.mark.usefixtures("keeper")
async def test_stop_ends_the_programs_of_an_answer(codex: CodexBackend, folder: Path) -> None:
    seconds = 50_000 + os.getpid()
    request = agent(codex, DIRECT, folder, run=True)
    codex.api.scripts[DIRECT] = OBEDIENT
    order = ("own", "exec_command", {"cmd": f"sleep {seconds}", "yield_time_ms": 60_000})
    messages = (request.messages[0], Message("user", json.dumps([order])))
    before = len(codex.api.requests)
    async with aclosing(run(PROVIDER, replace(request, messages=messages), 5)) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    await asyncio.to_thread(wait_until, lambda: not sleeping(seconds))
    assert len(codex.api.requests) == before + 1, "nothing was asked after Stop"


async def test_requests_above_the_limit_end_the_answer(
    codex: CodexBackend, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex reports calls of unknown tools to its model only."""
    configure(max_tool_rounds=3)
    monkeypatch.setattr("apps.agents.limits.MAX_TOOL_CALLS", 2)
    codex.api.scripts["endless"] = Script([[*own("nonsense", {}), *end()]])
    before = len(codex.api.requests)
    recorded = await record(PROVIDER, chat_request("endless"))
    assert "the limit of 6 requests" in recorded.failure.message
    asked = len(codex.api.requests)
    assert asked - before < 20
    codex.api.scripts["calm"] = Script([[*say("Calm."), *end()]])
    await record(PROVIDER, chat_request("calm"))
    assert len(codex.api.requests) == asked + 1, "it went on asking"


async def test_a_helper_is_refused_and_asks_nothing(codex: CodexBackend) -> None:
    """A helper would go on asking after the answer and after Stop."""
    spawn: Order = ("own", "spawn_agent", SPAWN, "collaboration")
    before = len(codex.api.requests)
    await tell(codex, chat_request(IN_EXEC), *[spawn] * 5)
    assert all(map(REFUSED.search, answers(codex.api)))
    assert len(codex.api.requests) == before + 6


async def test_web_search_and_network_are_for_staff(codex: CodexBackend) -> None:
    """Also if the conversation has them stored, from the time when its owner was staff."""
    flags = {"webSearchEnabled": True, "networkAccessEnabled": True}
    request = replace(chat_request(DIRECT), flags=flags)
    await tell(codex, request)
    assert "web_search" in offered(codex.api.requests[-1].body)
    with acting_as(USER):
        await tell(codex, request)
    assert "web_search" not in offered(codex.api.requests[-1].body)


def test_a_codex_that_ignores_the_sandbox_answers_nothing() -> None:
    opened = Opened.model_validate({"thread": {"id": "t"}})
    assert opened.limited({"sandbox": "danger-full-access"}).id == "t"
    with pytest.raises(Unavailable, match="does not know the sandbox"):
        opened.limited({"permissions": sandbox.PROFILE})
    opened = Opened.model_validate(
        {"thread": {"id": "t"}, "activePermissionProfile": {"id": ":workspace"}}
    )
    with pytest.raises(Unavailable):
        opened.limited({"permissions": sandbox.PROFILE})


def test_settings_of_an_agent_do_not_override_its_rights(
    tmp_path: Path, configure: Callable[..., None]
) -> None:
    configure(data_dir=tmp_path / "data")
    settings: Mapping[str, Any] = {
        "features.multi_agent_v2": {"max_concurrent_threads_per_session": 9},
        "permissions.codeinfo": {"filesystem": {"/": "write"}},
        "sandbox_workspace_write.network_access": True,
        "projects": {str(tmp_path): {"trust_level": "trusted"}},
        "shell_environment_policy.inherit": "all",
        "profile": "open",
        "profiles.open": {"sandbox_mode": "danger-full-access"},
        "model_reasoning_effort": "low",
        "features.goals": True,
    }
    chosen = sandbox.thread_config(tmp_path, Rights(run=True), settings, "disabled")
    assert {key for key in chosen if key in settings} == {
        *("model_reasoning_effort", "features.goals"),
        *("projects", "shell_environment_policy.inherit"),
    }
    assert chosen["projects"] == {str(tmp_path): {"trust_level": "untrusted"}}
    assert chosen["shell_environment_policy.inherit"] == "core"
    assert chosen["permissions"]["codeinfo"]["network"] == {"enabled": False}
    assert chosen["permissions"]["codeinfo"]["filesystem"][str(tmp_path)] == "read"


async def test_a_work_folder_that_cannot_be_made_is_said(
    codex: CodexBackend, configure: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    configure(codex_workdir=tmp_path / "file" / "work")
    recorded = await record(PROVIDER, chat_request(DIRECT))
    assert recorded.failure.code == "PROVIDER_UNAVAILABLE"
    assert "Codex does not start" in recorded.failure.message


def test_leftovers_of_killed_turns_are_swept(
    tmp_path: Path, configure: Callable[..., None]
) -> None:
    configure(codex_workdir=tmp_path)
    old, new, others = work_folder.create(), work_folder.create(), tmp_path / "mine"
    others.mkdir()
    (old / "file").write_text("x")
    for path in (old, others):
        os.utime(path, (0, 0))
    work_folder.sweep()
    assert sorted(tmp_path.iterdir()) == sorted((new, others))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_sandbox_holds_for_another_user_than_root(
    tmp_path_factory: pytest.TempPathFactory, configure: Callable[..., None]
) -> None:
    """Codex's own command for its sandbox, with the profile of a thread, as `nobody`."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        work, data, home = (place / part for part in ("work", "work/data", "home"))
        for path in (work, data, home):
            path.mkdir()
            path.chmod(0o755)
        (data / "server.json").write_text("CANARY")
        (home / "key").write_text("CANARY")
        package = bundled_codex_path().parent.parent
        for part in ("bin/codex", "codex-resources/bwrap"):
            (place / part).parent.mkdir()
            shutil.copy(package / part, place / part)
            (place / part).parent.chmod(0o755)
            (place / part).chmod(0o755)
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(work), str(home)], check=True)
        configure(data_dir=data, codex_home=home)
        limits = sandbox.thread_config(work, Rights(write=True, run=True), {}, "disabled")
        paths = limits["permissions"]["codeinfo"]["filesystem"]
        paths = {str(place) if key == str(package) else key: value for key, value in paths.items()}
        paths |= {str(home): "deny"}
        (home / "config.toml").write_text(
            "[permissions.codeinfo.filesystem]\n"
            + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in paths.items())
        )
        (home / "config.toml").chmod(0o644)
        command = f"id -u; cat {data}/server.json {home}/key; ls /root; echo made > {work}/made"
        done = subprocess.run(
            [
                *(str(place / "bin/codex"), "sandbox", "-P", "codeinfo", "-C", str(work)),
                *("--", "sh", "-c", command),
            ],
            env={"CODEX_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home)},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert str(NOBODY) in done.stdout, done
        assert "CANARY" not in done.stdout + done.stderr, done
        assert "Permission denied" in done.stderr, done
        assert (work / "made").read_text() == "made\n", done
