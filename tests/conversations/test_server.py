"""Chat through the real server: first byte, hang-ups, closes, the end of the process."""

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from tests.browser.product import Product, running
from tests.stand_ins.openai_scripts import Script, Stall, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door


HALF = Script([[*say("half", 9), Stall()]])
WHOLE = Script([[*say("half whole", 5), *end()]])


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn() as server:
        server.scripts |= {"half": HALF, "whole": WHOLE}
        yield server


@pytest.fixture(scope="module")
def product(model: OpenAIStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("chat")
    with running(folder, CODEINFO_OPENAI_BASE_URL=model.url) as product:
        yield product


def body(conversation: str, model: str, **more: Any) -> dict[str, Any]:
    fields = {"provider": "openai", "model": model, "message": "Why?"}
    return {**fields, "conversationId": conversation, **more}


def lines(response: httpx.Response) -> Iterator[str]:
    """The lines of a stream, without blank ones and ids."""
    return (line for line in response.iter_lines() if line and not line.startswith("id: "))


def turns(product: Product, conversation: str) -> Any:
    return httpx.get(f"{product.url}/conversations/{conversation}/turns", timeout=PATIENCE).json()


def test_the_first_byte_comes_before_the_model_speaks(
    product: Product, model: OpenAIStandIn
) -> None:
    model.hold()
    fields = body("c1", "whole")
    accept = {"Accept": "text/event-stream"}
    url = f"{product.url}/chat"
    with httpx.stream("POST", url, json=fields, headers=accept, timeout=PATIENCE) as answer:
        received = lines(answer)
        assert next(received) == ":"
        model.release()
        rest = [json.loads(line.removeprefix("data: ")) for line in received]
    # Its two tokens are one frame where they came together.
    kinds = [kind for kind, _ in groupby(message["type"] for message in rest)]
    assert kinds == ["token", "final", "complete"]
    words = [message["content"] for message in rest if message["type"] == "token"]
    assert len(words) <= 2
    assert "".join(words) == rest[-2]["message"]["content"]


def test_a_stream_that_broke_off_continues_where_it_was(
    product: Product, model: OpenAIStandIn
) -> None:
    accept = {"Accept": "text/event-stream"}
    url, fields = f"{product.url}/chat", body("broken-off", "half")
    with httpx.stream("POST", url, json=fields, headers=accept, timeout=PATIENCE) as answer:
        received = (line for line in answer.iter_lines() if line)
        assert next(received) == ":"
        last = next(received).removeprefix("id: ")
        said = json.loads(next(received).removeprefix("data: "))["content"]
    url = f"{product.url}/conversations/broken-off/events"
    with httpx.stream(
        "GET", url, headers={**accept, "Last-Event-ID": last}, timeout=PATIENCE
    ) as rest:
        assert next(received := lines(rest)) == ":"
        httpx.post(f"{product.url}/conversations/broken-off/cancel", timeout=PATIENCE)
        messages = [json.loads(line.removeprefix("data: ")) for line in received]
    said += "".join(one["content"] for one in messages if one["type"] == "token")
    assert said == "half"
    assert messages[-1] == {"type": "error", "message": "generation stopped"}


@pytest.mark.parametrize("stops", [False, True])
def test_hanging_up_stops_the_model_only_where_the_body_said_so(
    product: Product, model: OpenAIStandIn, stops: bool
) -> None:
    conversation = f"hang-up-{stops}"
    fields = body(conversation, "half", cancelOnDisconnect=stops)
    accept = {"Accept": "text/event-stream"}
    url = f"{product.url}/chat"
    with httpx.stream("POST", url, json=fields, headers=accept, timeout=PATIENCE) as answer:
        received = lines(answer)
        assert next(received) == ":"
        assert json.loads(next(received).removeprefix("data: "))["content"] == "half"
    exchange = model.chats[-1]
    if not stops:
        assert turns(product, conversation)["inflight"]["assistantText"] == "half"
        httpx.post(f"{product.url}/conversations/{conversation}/cancel", timeout=PATIENCE)
    # Stop, whoever asks for it, hangs up on the model.
    assert exchange.client_left.wait(PATIENCE)
    wait_until(lambda: "inflight" not in turns(product, conversation))
    answered = turns(product, conversation)["items"][0]
    assert (answered["status"], answered["content"]) == ("stopped", "half")


@pytest.mark.parametrize("frame", ["{", '{"protocolVersion":"v2"}'])
def test_a_wrong_frame_is_closed_with_1008_and_the_reason(product: Product, frame: str) -> None:
    with connect(f"{product.url.replace('http', 'ws')}/ws") as socket:
        socket.send(frame)
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(PATIENCE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert closed.value.rcvd.reason in ("malformed JSON", "protocolVersion must be v1")


def test_a_malformed_form_is_refused_in_json(product: Product) -> None:
    kind = {"Content-Type": "multipart/form-data"}
    answer = httpx.post(f"{product.url}/chat", content=b"no part", headers=kind, timeout=PATIENCE)
    assert (answer.status_code, answer.headers["content-type"]) == (415, "application/json")


def half_said(product: Product, conversation: str) -> None:
    """Ask, and return when the first half of the answer has come; the other will not."""
    started = httpx.post(f"{product.url}/chat", json=body(conversation, "half"), timeout=PATIENCE)
    assert started.status_code == 202
    said = {"assistantText": "half"}
    wait_until(lambda: said.items() <= turns(product, conversation).get("inflight", {}).items())


def interrupted(product: Product, conversation: str) -> dict[str, Any]:
    answer, started = turns(product, conversation)["items"]
    assert started["content"] == "Why?"
    assert (answer["status"], answer["error"]["code"]) == ("failed", "INTERRUPTED")
    return dict(answer)


def test_the_end_of_the_server_is_the_end_of_its_answers(
    model: OpenAIStandIn, tmp_path: Path
) -> None:
    data = tmp_path / "1" / "data"
    config = {"CODEINFO_OPENAI_BASE_URL": model.url, "CODEINFO_DATA_DIR": str(data)}
    for name in "123":
        (tmp_path / name).mkdir()
    with running(tmp_path / "1", **config) as first:
        half_said(first, "killed")
        with closing(sqlite3.connect(data / "codeinfo.sqlite3")) as rows:
            query = "SELECT owner FROM conversations_turn WHERE status = 'running'"
            ((owner,),) = rows.execute(query).fetchall()
        os.kill(int(owner.split("/")[1]), signal.SIGKILL)
    with running(tmp_path / "2", **config) as second:
        interrupted(second, "killed")
        half_said(second, "stopped")
    with running(tmp_path / "3", **config) as third:
        # In order: all that was said is kept.
        assert interrupted(third, "stopped")["content"] == "half"
