"""Fault row 19: whatever is sent, the answer is the family's JSON and never a 500.

Requests and frames go straight to the ASGI application, so that bodies may be chunked, unfinished
or no text at all. The examples are the same in every run.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.conversations.models import Conversation
from apps.embedding.static import MODEL_ID
from codeinfo.asgi import application

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

PATIENCE = 60
NO_RUN = "00000000-0000-4000-8000-000000000000"
# Every POST route of the API, with a body that is right but for what an example makes of it.
TURN = {"role": "assistant", "content": "x", "model": "m", "provider": "builtin", "status": "ok"}
TURN_MORE = ("source", "toolCalls", "command", "usage", "timing")
CHAT = {"provider": "builtin", "model": "search", "conversationId": "c1", "message": "x"}
CHAT_MORE = (
    *("messages", "inflightId", "threadId", "scope"),
    *("sandboxMode", "networkAccessEnabled"),
)
START = {"path": "/tmp/none", "name": "n", "model": MODEL_ID}
ENTRY = {"level": "info", "message": "m", "timestamp": "2026-01-02T03:04:05Z", "source": "client"}
ENTRY_MORE = ("requestId", "correlationId", "userAgent", "url", "route", "tags", "context")
IDS = {"conversationIds": ["c1"]}
POSTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "/ingest/start": (START, ("description", "dryRun")),
    f"/ingest/cancel/{NO_RUN}": ({}, ()),
    "/ingest/reembed//tmp/none": ({}, ()),
    "/ingest/remove//tmp/none": ({}, ()),
    "/tools/vector-search": ({"query": "x"}, ("repository", "limit")),
    "/conversations": ({"provider": "builtin", "model": "m"}, ("title", "flags", "source")),
    "/conversations/c1/archive": ({}, ()),
    "/conversations/c1/restore": ({}, ()),
    "/conversations/c1/turns": (TURN, TURN_MORE),
    "/conversations/c1/cancel": ({}, ("inflightId",)),
    "/conversations/bulk/archive": (IDS, ()),
    "/conversations/bulk/restore": (IDS, ()),
    "/conversations/bulk/delete": (IDS, ()),
    "/chat": (CHAT, CHAT_MORE),
    "/agents/none/run": ({"instruction": "x"}, ("conversationId", "working_folder")),
    "/agents/none/commands/run": ({"commandName": "x"}, ("conversationId", "working_folder")),
    "/logs": (ENTRY, ENTRY_MORE),
}
GETS = (
    *("/health", "/version", "/info", "/ingest/roots", "/ingest/models", "/ingest/dirs"),
    *("/ingest/status/", "/tools/ingested-repos", "/conversations", "/conversations/c1/turns"),
    *("/chat/providers", "/chat/models", "/logs", "/agents", "/agents/none/commands"),
)
PAGES = (
    *("/", "/chat", "/ingest", "/search", "/login", "/ui/retrieval/source", "/ui/ingest/skipped"),
    *("/code", "/code/none/a.py", "/ui/code/changed", "/ui/code/lines"),
    *("/ui/code/tree", "/ui/code/name"),
    *("/ui/ingest/folders", "/ui/ingest/root/", "/ui/chat/sidebar", "/ui/chat/picker"),
    *("/ui/chat/scope", "/ui/palette"),
    *("/ui/chat/actions", "/ui/chat/export", "/ui/chat/shares", "/shared/none"),
    *("/ui/ingest/remove", "/ui/ingest/skipped.csv"),
    *("/logs", "/ui/logs/list", "/ui/logs/chart", "/agents"),
)
# What shows what the posts have left behind.
KEPT = ("/logs", "/conversations", "/conversations/c1/turns", "/ingest/roots", "/ingest/dirs")
NAMES = (
    *("limit", "cursor", "state", "archived", "agentName", "provider", "path", "repo", "start"),
    *("level", "source", "text", "since", "sinceSequence", "live"),
    *("scope", "repository", "ask", "at", "part", "mode", "language", "find", "n"),
    *("end", "q", "c", "id", "format", "run", "root", "page", "kind", "conversation"),
)

# What is likely to be taken for something else.
ODD: list[Any] = [
    *(10**400, -(10**30), 2**63, 1e308, float("nan"), float("-inf"), 5.0, True, None, 0, -1),
    *("", " ", "\0", "\ud800", "\udfff\ud800", "\u202e", "c1", "builtin", "openai", "search"),
    *("user", "assistant", "ok", "REST", "5", "true", "../../etc", "x" * 300, "é" * 128),
    *([], {}, [[]], {"calls": 5}, {"calls": [5, {}]}, {"calls": [{"callId": [], "name": {}}]}),
    *({"inputTokens": 10**400}, {"totalTimeSec": 10**400}, {"name": "n"}, ["c1"], ["\ud800"]),
]
scalars = st.sampled_from(ODD) | st.text(max_size=20) | st.integers() | st.floats()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


def deep(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


raw_bodies = (
    st.binary(max_size=60)
    | values.map(lambda value: json.dumps(value).encode())
    | st.sampled_from([b"", b"{", b"nul", b'"\xff"', b"NaN", b"\xef\xbb\xbf{}", b"1" * 5000])
)


def bodies(right: dict[str, Any], more: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """Any bytes, any JSON, and a right body with a field or two that are odd or very deep."""
    names = st.sampled_from((*right, *more, "none"))
    changed = st.dictionaries(names, values, min_size=1, max_size=2).map(
        lambda changes: json.dumps(right | changes).encode()
    )
    return changed | raw_bodies


def one_field_wrong(right: dict[str, Any], more: tuple[str, ...]) -> Iterator[bytes]:
    """A right body with each of its fields once each oddity, and once each depth."""
    for name in (*right, *more, "none"):
        for odd in ODD:
            yield json.dumps(right | {name: odd}).encode()
        for levels in (90, 480, 5000):
            for shape in (("[", "]"), ('{"a":', "}")):
                filled = deep(levels, *shape).replace(":}", ":0}")
                yield json.dumps(right | {name: "@"}).replace('"@"', filled).encode()


KINDS = st.sampled_from(
    [
        *["application/json"] * 20,
        *("application/json; charset=utf-16", "application/json; charset=rot13"),
        *("application/json; charset=hex", "application/json;charset=", "text/plain", "", "é/\0"),
    ]
)
ACCEPTS = st.sampled_from(["application/json", "text/event-stream", "*/*", "text/xml", "é;q=x", ""])
settled = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


async def send(
    method: str, path: str, *, query: bytes = b"", pieces: tuple[bytes, ...] = (), **headers: str
) -> tuple[int, str, bytes]:
    """Status, content type and body of the answer. Without a length the body is chunked."""
    pairs = {"host": "localhost", **headers}
    if len(pieces) == 1:
        pairs["content-length"] = str(len(pieces[0]))
    elif pieces:
        pairs["transfer-encoding"] = "chunked"
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in pairs.items()],
    }
    door = ApplicationCommunicator(application, scope)
    for number, piece in enumerate(pieces or (b"",), 1):
        more = number < len(pieces)
        await door.send_input({"type": "http.request", "body": piece, "more_body": more})
    start = await door.receive_output(PATIENCE)
    body, part = b"", {"more_body": True}
    while part.get("more_body"):
        part = await door.receive_output(PATIENCE)
        body += part.get("body", b"")
    await door.wait(PATIENCE)
    found = {name.lower(): value.decode() for name, value in start["headers"]}
    return start["status"], found.get(b"content-type", ""), body


def check(path: str, status: int, kind: str, body: bytes) -> None:
    """No bug; JSON that strict readers can read; an error has the envelope of its family."""
    assert status < 500 or status in (502, 503), (path, status, body)
    if kind.startswith("text/event-stream"):
        return
    assert kind.startswith("application/json"), (path, status, kind)
    answer = json.loads(body, parse_constant=pytest.fail)
    if status >= 400:
        words = [answer.get("code") if answer.get("status") == "error" else answer.get("error")]
        assert all(isinstance(word, str) and word for word in words), (path, status, answer)


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("path", POSTS)
def test_no_field_however_odd_breaks_a_route(loop: asyncio.Runner, path: str) -> None:
    Conversation.objects.create(id="c1", provider="builtin", model="search")
    for body in one_field_wrong(*POSTS[path]):
        answer = loop.run(send("POST", path, pieces=(body,), content_type="application/json"))
        check(path, *answer)
    # Nor does what was kept.
    for route in KEPT:
        check(route, *loop.run(send("GET", route)))
    for page in (b"/chat?c=c1", b"/ui/chat/export?c=c1", b"/ingest"):
        at, _, query = page.partition(b"?")
        assert loop.run(send("GET", at.decode(), query=query, accept="text/html"))[0] == 200


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("path", POSTS)
def test_no_body_breaks_a_route(loop: asyncio.Runner, path: str) -> None:
    Conversation.objects.create(id="c1", provider="builtin", model="search")

    @settings(settled, max_examples=25)
    @given(body=bodies(*POSTS[path]), kind=KINDS, accept=ACCEPTS, cut=st.integers(0, 80))
    def hold(body: bytes, kind: str, accept: str, cut: int) -> None:
        pieces = (body[:cut], body[cut:]) if cut % 3 == 0 else (body,)
        answer = loop.run(send("POST", path, pieces=pieces, content_type=kind, accept=accept))
        check(path, *answer)

    hold()


queries = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(ODD).map(str) | st.text(max_size=20)),
    max_size=3,
).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")
) | st.binary(max_size=30)
tails = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "/", "//", "/..", "\0", "%00", NO_RUN, "/turns", "/c1/turns", "x" * 300]
)


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("path", GETS)
def test_no_query_or_tail_breaks_a_get(loop: asyncio.Runner, path: str) -> None:
    Conversation.objects.create(id="c1", provider="builtin", model="search")

    @settings(settled, max_examples=25)
    @given(query=queries, tail=tails, exact=st.booleans(), accept=ACCEPTS, kind=KINDS)
    def hold(query: bytes, tail: str, exact: bool, accept: str, kind: str) -> None:
        requested = path if exact else path + tail
        check(
            requested,
            *loop.run(send("GET", requested, query=query, accept=accept, content_type=kind)),
        )

    hold()


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("path", PAGES)
def test_no_query_breaks_a_page(loop: asyncio.Runner, path: str) -> None:
    @settings(settled, max_examples=12)
    @given(query=queries, tail=tails, exact=st.booleans())
    def hold(query: bytes, tail: str, exact: bool) -> None:
        requested = path if exact or path in ("/", "/chat") else path + tail
        status, _, body = loop.run(send("GET", requested, query=query, accept="text/html"))
        assert status < 500, (requested, status, body[-300:])

    hold()


@pytest.mark.fault("Malformed requests")
def test_no_path_is_a_bug(loop: asyncio.Runner) -> None:
    @settings(settled, max_examples=40)
    @given(path=tails, method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "BREW"]))
    @example(path="/conversations/bulk/nothing", method="POST")
    def hold(path: str, method: str) -> None:
        status, _, _ = loop.run(send(method, f"/{path}", accept="application/json"))
        assert status < 500, path

    hold()


WORDS = ("subscribe_conversation", "subscribe_ingest", "cancel_inflight", "unsubscribe_sidebar")
frames = raw_bodies | st.fixed_dictionaries(
    {"protocolVersion": st.just("v1"), "requestId": st.just("r"), "type": st.sampled_from(WORDS)},
    optional={"conversationId": values, "inflightId": values},
).map(lambda frame: json.dumps(frame).encode())


async def say(frame: bytes, binary: bool) -> None:
    """One frame; the socket then answers a sound one, or has closed with a code of its protocol."""
    socket = WebsocketCommunicator(application, "/ws", headers=[(b"host", b"localhost")])
    await socket.connect(timeout=PATIENCE)
    text = frame.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()
    key, value = ("bytes", frame) if binary else ("text", text)
    await socket.send_input({"type": "websocket.receive", key: value})
    sound = {"protocolVersion": "v1", "requestId": "r", "type": "cancel_inflight"}
    await socket.send_to(text_data=json.dumps({**sound, "conversationId": "e", "inflightId": "e"}))
    while True:
        output = await socket.receive_output(timeout=PATIENCE)
        if output["type"] == "websocket.close":
            assert output["code"] in (1008, 1009) and output["reason"]
            break
        if json.loads(output["text"]).get("conversationId") == "e":
            break
    await socket.disconnect(timeout=PATIENCE)


@pytest.mark.fault("Malformed requests")
def test_no_frame_breaks_the_socket(loop: asyncio.Runner) -> None:
    @settings(settled, max_examples=60)
    @given(frame=frames, binary=st.booleans())
    @example(frame=deep(30_000).encode(), binary=False)
    def hold(frame: bytes, binary: bool) -> None:
        loop.run(say(frame, binary))

    hold()
