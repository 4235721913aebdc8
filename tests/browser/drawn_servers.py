"""Servers of the states that only `make screenshots` draws: one with much of everything, and one
whose repositories were changed and moved away after they were ingested."""

import os
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.browser import sample_history
from tests.browser.gallery import KEEPER, MAKE_USER
from tests.browser.lantern import FILES as LANTERN
from tests.browser.product import Product, running
from tests.browser.sample_shop import SHOP
from tests.lookup.harbours import FILES as HARBOUR
from tests.stand_ins.embeddings_server import EmbeddingsServer, Reply
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_scripts import Script, Stall, answer_from_tools, end, say, search
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support import forks
from tests.support.agents import command_text, make_agent
from tests.support.git import commit_all, init
from tests.support.ingested import CALLER, SAMPLE, write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE

# All that an answer may be written with.
LONG_ANSWER = """\
# How a call is tried again

The delay **doubles** with each attempt, as `backoff_delay` in `src/retry.py` says. The path
`apps/a_folder_with_a_long_name/and_another_one_below_it/whose_file_has_a_name_that_does_not_end.py`
is longer than a phone is wide.

1. `RetryPolicy` counts the attempts.
2. After each failure:
   - it waits
   - it asks `should_retry`

| attempt | delay | seconds that have passed since the first call of the ship was made |
| ---: | ---: | --- |
| 1 | 0.5 s | 0.5 |
| 2 | 1 s | 1.5 |
| 3 | 2 s | 3.5 |

```python
def backoff_delay(attempt: int, base: float = 0.5) -> float:
    return base * 2**attempt  # a comment that goes on and on, past the edge of what a page can show
```

> A quotation of the documentation, which is set off from the text.

```mermaid
flowchart LR
  Call --> Failure --> Wait --> Call
  Call --> Success
```

See [the documentation](https://example.org/retry) for *more*.
"""
PROMPT = "Keep watch."
TIDE = "def tide_of(harbour):\n    return harbour.tide\n\n\ndef depth_of(berth):\n    return 4\n"
SHIP = "def sail(port):\n    return port\n"


def _rich(folder: Path, stack: ExitStack) -> Product:
    stand_in = stack.enter_context(OpenAIStandIn())
    stand_in.scripts |= {
        "long": Script([[*say(LONG_ANSWER), *end()]]),
        "pauses": Script([search, lambda request: [*answer_from_tools()(request)[:80], Stall()]]),
    }
    stand_in.models += ["long", "pauses", "status-429"]
    lm_studio = stack.enter_context(LMStudioStandIn())
    agents = folder / "agents"
    commands = {"watch_ships": command_text("Which ships?", "Where?")}
    make_agent(agents, "keeper", KEEPER, prompt=PROMPT, commands=commands)
    halting = KEEPER.replace("plain", "pauses")
    make_agent(agents, "halting", halting, prompt=PROMPT, commands=commands)
    (folder / ".cursor").mkdir()
    config = {
        "CODEINFO_OPENAI_BASE_URL": stand_in.url,
        "LMSTUDIO_BASE_URL": lm_studio.url,
        "CODEINFO_AGENTS_HOME": str(agents),
    }
    product = stack.enter_context(running(folder, **config))
    environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(product.data)}
    done = forks.manage("shell", "--no-imports", "-c", MAKE_USER, environ=environ)
    assert done.returncode == 0, done.stderr
    sample_history.make(product.repos / "pier")
    for name, files in {"lantern": LANTERN, "shop": SHOP, "harbour": HARBOUR, "pier": {}}.items():
        ingest_into(product, write_files(product.repos / name, files))
    return product


def _worn(folder: Path, stack: ExitStack) -> Product:
    """No language model, and an embedding server that has failed since the questions."""
    embeddings = stack.enter_context(EmbeddingsServer())
    product = stack.enter_context(running(folder, CODEINFO_EMBEDDING_BASE_URL=embeddings.url))
    lighthouse = init(product.repos / "lighthouse")
    commit_all(write_files(lighthouse, {**SAMPLE, **CALLER, "src/tide.py": TIDE}))
    harbour = write_files(product.repos / "harbour", {"src/ship.py": SHIP})
    for repository in (lighthouse, harbour):
        ingest_into(product, repository, model="openai:text-embedding-small")
    for name, question in (
        ("lighthouse", "backoff_delay, saveShip and tide_of"),
        ("harbour", "Where is sail defined?"),
    ):
        _ask(product, name, question)
    write_files(lighthouse, {"src/retry.py": "# One more line\n" + SAMPLE["src/retry.py"]})
    write_files(lighthouse, {"src/store.js": SAMPLE["src/store.js"].replace("insert", "put")})
    (lighthouse / "src/tide.py").unlink()
    harbour.rename(folder / "moved-away")
    embeddings.script += [Reply(503, {"error": "It restarts."})] * 1_000
    return product


def _ask(product: Product, repository: str, question: str) -> None:
    """The conversation has the repository's name."""
    body = {
        "provider": "builtin",
        "model": "search",
        "conversationId": repository,
        "message": question,
        "scope": [repository],
    }
    accept = {"Accept": "text/event-stream"}
    answer = httpx.post(f"{product.url}/chat", json=body, headers=accept, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text


DRAWN_START = {"rich": _rich, "worn": _worn}
