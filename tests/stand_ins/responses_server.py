"""A stand-in for OpenAI's Responses API, for the real Codex binary to talk to.

In a test:

    with ResponsesStandIn() as server:
        write_config(home, server.url)         # a CODEX_HOME that points there
        ...                                    # request model "tool", "think", "stall", …
        server.requests[-1].body               # the body that Codex sent

The model's name selects the script for POST /v1/responses (`responses_scripts`). A websocket
upgrade gets 426, after which Codex falls back to POST. Holding, pacing and /control work as in
`openai_server`.

By hand:

    python -m tests.stand_ins.responses_server --home /tmp/codex --port 9098
    CODEINFO_CODEX_HOME=/tmp/codex make run

There Codex lists its own models, and each runs the script "slow-tool".
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.core.types import JSON
from tests.stand_ins import responses_scripts
from tests.stand_ins.openai_scripts import Raw, Script, Status, Step
from tests.stand_ins.openai_server import OpenAIStandIn, RecordedRequest, ScriptedResponse
from tests.stand_ins.responses_scripts import Event

PATH = "/v1/responses"

CONFIG = """\
model = "plain"
model_provider = "standin"
check_for_update_on_startup = false

[analytics]
enabled = false

# Else it runs a login shell for each thread, whatever that reads on this machine.
[features]
shell_snapshot = false

[model_providers.standin]
name = "Stand-in"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = {retries}
"""


# Codex as OpenAI serves it, but at this address: with a login, its own models, and a websocket.
OPENAI = """\
openai_base_url = "{url}"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
shell_snapshot = false
"""
KEY = "sk-standin"


def write_config(home: Path, url: str, retries: int = 0) -> None:
    """Make `home` a Codex home whose model provider is a stand-in; no login is needed there."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(CONFIG.format(url=url, retries=retries))


def write_login(home: Path, url: str) -> None:
    """Make `home` a Codex home that is logged in by a key at what it takes for OpenAI."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(OPENAI.format(url=url))
    login = {"auth_mode": "apikey", "OPENAI_API_KEY": KEY}
    (home / "auth.json").write_text(json.dumps(login))


class ResponsesStandIn(OpenAIStandIn):
    """The server; see `StandIn`."""

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests for responses, in order."""
        return [item for item in self.exchanges if item.path == PATH and item.body]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ScriptedCodexResponse(self, reader, writer).serve()


class ScriptedCodexResponse(ScriptedResponse):
    """Serves one connection: one request and its response."""

    last = b""

    async def route(self, method: str, body: Any) -> None:
        match method, self.exchange.path:
            case "POST", "/v1/responses":
                script = responses_scripts.script_for(body["model"], self.server.scripts)
                await self.play(script, body)
            case "GET", "/v1/responses":
                await self.refuse(Status(426, "no websocket here"))
            case _:
                await self.refuse(Status(404, "no such path"))

    def steps_of(self, script: Script, body: JSON) -> Iterable[Step]:
        created = responses_scripts.event("response.created", response={"id": "resp_1"})
        steps = list(responses_scripts.steps_of(script, body))
        return steps if isinstance(steps[0], Status) else [created, *steps]

    def frame(self, step: Step, body: JSON) -> bytes:
        match step:
            case Raw(data=data):
                return data
            case Event(type=type, body=more):
                text = json.dumps({"type": type, **more})
                return f"event: {type}\ndata: {text}\n\n".encode()
            case _:
                raise TypeError(f"{step} is no event of this wire")


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted Responses API for Codex.")
    parser.add_argument("--home", type=Path, help="a Codex home to write config.toml to")
    parser.add_argument("--port", type=int, default=9098)
    parser.add_argument("--pace", type=float, default=1.0, help="1: waits as written, 0: none")
    options = parser.parse_args()
    with ResponsesStandIn(port=options.port, pace=options.pace) as server:
        if options.home:
            write_login(options.home, server.url)
        print(f"{server.url}\nmodels: {', '.join(responses_scripts.SCRIPTS)}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
