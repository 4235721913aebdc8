"""Passes messages between a client and an endpoint of the server, which learns where it works."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from codeinfo_cli.bridge import messages
from codeinfo_cli.bridge.answers import stored_answer
from codeinfo_cli.bridge.http import Answer, Http
from codeinfo_cli.bridge.link import Link
from codeinfo_cli.bridge.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    BadAnswer,
    Disconnected,
    Message,
)
from codeinfo_cli.bridge.streams import Input, Output, log
from codeinfo_cli.bridge.workspace import CONSENT, YES, ClientRequests, Workspace
from codeinfo_cli.server import ServerUnavailable

# Requests under way and waiting, and the bytes of their messages.
MAX_PENDING, MAX_PENDING_BYTES = 100, 32 * 2**20
# After the end of the input, answers to earlier requests are written for so long once the server is
# there.
LINGER_SECONDS, LOOK_SECONDS = 10.0, 0.05
LISTEN = "subscriptions/listen"
# The client's roots may have changed.
LOOK_AGAIN = ("notifications/initialized", "notifications/roots/list_changed")
ENDED = "The server of codeinfo ended before it answered. Call again: it is started again."


class Bridge:
    """One client, from its first line to the end of its input."""

    def __init__(self, data: Path, endpoint: str, *, stdin: int, stdout: int) -> None:
        """endpoint: tools, chat or agents; stdin, stdout: file descriptors"""
        self._endpoint = endpoint
        self._link = Link(data)
        self._http = Http(self._link, endpoint)
        self._input = Input(stdin)
        self._stopped = asyncio.Event()
        self._output = Output(stdout, self._stopped.set)
        self._client = ClientRequests(self._output.write)
        self._workspace = Workspace(self._client, is_used=endpoint != "agents")
        self._pending: dict[str, tuple[Message, asyncio.Task[None]]] = {}
        self._others: set[asyncio.Task[None]] = set()
        # Of the handshake revisions: the client's own `initialize`, and what it led to.
        self._hello: Message | None = None
        self._hello_lock = asyncio.Lock()
        self._hello_is_answered = False
        self._version = self._session = ""

    async def run(self) -> None:
        """Serve until the input ends, the reader of the output is gone, or a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stopped.set)
        self._link.start()
        reading = asyncio.create_task(self._read())
        stopping = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        tasks = [reading, stopping, *(task for _, task in self._pending.values()), *self._others]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1.0)

    async def _read(self) -> None:
        async for line in self._input.lines():
            if line is None:
                text = "The message is too long."
                error = messages.error_line(None, INVALID_REQUEST, text, "PAYLOAD_TOO_LARGE")
                await self._output.write(error)
            else:
                await self._receive(messages.parse(line))
        self._client.end()
        await self._linger()

    async def _linger(self) -> None:
        """Let requests end after the input has, as in `echo … | codeinfo mcp`."""
        rounds = LINGER_SECONDS / LOOK_SECONDS
        while self._others or any(one.method != LISTEN for one, _ in self._pending.values()):
            if rounds <= 0 or not self._output.has_reader():
                return
            if self._link.is_lost:
                for message, task in [*self._pending.values()]:
                    task.cancel()
                    await self._fail(message, Disconnected("the input has ended"))
                return
            await asyncio.sleep(LOOK_SECONDS)
            rounds -= not self._link.is_starting

    async def _receive(self, message: Message) -> None:
        if message.method == "notifications/cancelled":
            self._cancel(message)
        elif message.kind == "notification":
            if message.method in LOOK_AGAIN:
                self._workspace.look()
            self._spawn(message)
        elif message.kind == "request":
            await self._request(message)
        elif message.kind == "invalid":
            await self._refused_by_server(message)
        else:
            self._client.answered(message)

    def _cancel(self, notification: Message) -> None:
        """Close the connection of a request, which cancels it. It is not answered."""
        pending = self._pending.get(messages.key_of(notification.params.get("requestId")))
        if pending and pending[0].method != "initialize":
            pending[1].cancel()

    async def _request(self, message: Message) -> None:
        if problem := self._no_room(message):
            text, reason = problem
            await self._output.write(messages.error_line(message.id, INVALID_REQUEST, text, reason))
            return
        is_hello = message.method == "initialize" and not message.is_stateless
        if is_hello:
            self._hello, self._version, self._session = message, "", ""
            self._hello_is_answered = False
            self._workspace.greeted(message)
        stored = not self._link.is_up and stored_answer(self._endpoint, message, self._version)
        if stored:
            if is_hello:
                self._version = stored["protocolVersion"]
                self._hello_is_answered = True
            await self._output.write(messages.result_line(message.id, stored))
            if not is_hello:
                return
        self._spawn(message)

    def _no_room(self, message: Message) -> tuple[str, str] | None:
        if message.key in self._pending:
            return "A request with this id is under way.", "DUPLICATE_ID"
        size = sum(len(one.line) for one, _ in self._pending.values())
        if len(self._pending) >= MAX_PENDING or size + len(message.line) > MAX_PENDING_BYTES:
            return "Too many requests are under way. Call again later.", "TOO_MANY_REQUESTS"
        return None

    async def _refused_by_server(self, message: Message) -> None:
        """Pass what is not a message: the server tells what is wrong with it."""
        if len(self._others) >= MAX_PENDING:
            text = "This is not a message of JSON-RPC."
            error = messages.error_line(message.id, INVALID_REQUEST, text, "INVALID_REQUEST")
            await self._output.write(error)
        else:
            self._spawn(message)

    def _spawn(self, message: Message) -> None:
        if message.kind == "notification" and len(self._others) >= MAX_PENDING:
            return
        task = asyncio.create_task(self._serve(message))
        if message.kind == "request":
            self._pending[message.key] = message, task
            task.add_done_callback(lambda _: self._forget(message))
        else:
            self._others.add(task)
            task.add_done_callback(self._others.discard)

    async def _answer(self, message: Message, line: bytes) -> None:
        """Write the answer to a request. Its id may be used again as soon as the client has it."""
        if task := self._forget(message):
            self._others.add(task)
            task.add_done_callback(self._others.discard)
        await self._output.write(line)

    def _forget(self, message: Message) -> "asyncio.Task[None] | None":
        pending = self._pending.get(message.key)
        if pending is None or pending[0] is not message:
            return None
        del self._pending[message.key]
        return pending[1]

    async def _serve(self, message: Message) -> None:
        """Send a message, and write what the server answers, or why it does not."""
        try:
            if message is self._hello or self._needs_hello(message):
                await self._handshake()
            if message is not self._hello:
                await self._exchange(message)
        except (ServerUnavailable, BadAnswer, Disconnected) as error:
            await self._fail(message, error)

    async def _fail(self, message: Message, error: Exception) -> None:
        text = ENDED if isinstance(error, Disconnected) else str(error)
        log(f"{message.method or 'message'}: {text} ({error!r})")
        if message.kind == "notification":
            return
        if message is self._hello:
            if self._hello_is_answered:
                return  # the next message sends it again
            self._hello_is_answered = True
        error_line = messages.error_line(message.id, INTERNAL_ERROR, text, "SERVER_UNAVAILABLE")
        await self._answer(message, error_line)

    def _needs_hello(self, message: Message) -> bool:
        return self._hello is not None and not self._session and not message.is_stateless

    async def _handshake(self) -> None:
        """Send the client's own `initialize`, and keep the session that it opens."""
        async with self._hello_lock:
            hello = self._hello
            if hello is None or self._session:
                return
            async with await self._http.post(hello, self._workspace.greeting()) as answer:
                line = messages.answer_line(await answer.body(), hello.id)
                self._session = answer.session
            result = json.loads(line).get("result")
            if isinstance(result, dict) and not self._version:
                self._version = str(result.get("protocolVersion", ""))
            if not self._session:
                # Refused: the client may send another.
                self._hello = None
            if not self._hello_is_answered:
                self._hello_is_answered = True
                await self._answer(hello, line)

    async def _exchange(self, message: Message, agreed: Mapping[str, str] | None = None) -> None:
        """agreed: the folders that the user was asked about, which the roots may not be any more"""
        headers = messages.headers_of(message, version=self._version, session=self._session)
        place = agreed or await self._workspace.headers(message)
        headers |= place
        async with await self._http.post(message, headers) as answer:
            if answer.is_stream:
                await self._stream(message, answer, place)
                return
            body = await answer.body()
        if message.kind != "notification":
            await self._answered(message, messages.answer_line(body, message.id), place)
        elif answer.status >= 400:
            log(f"{message.method}: refused with {answer.status}")

    async def _answered(self, message: Message, line: bytes, place: Mapping[str, str]) -> None:
        """Write the answer to a request, or send it again if the user agrees to what it asks."""
        if place.get(CONSENT) != YES and await self._workspace.agrees(message, line):
            await self._exchange(message, {**place, CONSENT: YES})
        else:
            await self._answer(message, line)

    async def _stream(self, message: Message, answer: Answer, place: Mapping[str, str]) -> None:
        is_answered = False
        async for line in answer.events():
            if messages.is_answer(line, message.id):
                is_answered = True
                await self._answered(message, line, place)
            else:
                await self._output.write(line)
        if not is_answered:
            raise BadAnswer(ENDED)


async def serve(data: Path, endpoint: str) -> None:
    """Serve the client at standard input and output."""
    # Nothing but messages may reach the client: whatever else is printed goes to standard error.
    stdout = os.dup(1)
    os.dup2(2, 1)
    await Bridge(data, endpoint, stdin=0, stdout=stdout).run()
