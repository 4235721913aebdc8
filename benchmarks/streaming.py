"""The latency that codeinfo adds to a streamed answer: to its first word, and to its other words.

    python -m benchmarks.streaming                       50 and 200 streams
    python -m benchmarks.streaming --streams 10 50       others

codeinfo, a stand-in for a model server and this client are three processes. The stand-in sends each
client 30 tokens a second. Each stream asks one question after the other. Streams start evenly over
the time of one answer, so that questions arrive at the rate at which answers end; the first answer
of each stream is not measured. The same is measured against the stand-in itself, before and after.
Prints one table. Exits 1 on any failure.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from benchmarks import product

MODEL = "slow"  # 120 words in some 130 tokens of 6 characters, one every 50 ms at pace 1
PACE = 2 / 3
ANSWER_SECONDS = 4.5
ANSWERS = 3  # of each stream; the first is warm-up
PATIENCE_SECONDS = 180


@dataclass(frozen=True)
class Target:
    """Where a question is put, what the words of its answer stand behind, and what ends it."""

    name: str
    port: int
    path: str
    words: bytes
    end: bytes

    def body(self, number: str) -> dict[str, Any]:
        if self.path == "/chat":
            body = {"provider": "openai", "conversationId": f"bench-{number}", "message": "Go on."}
            return {"model": MODEL, **body}
        messages = [{"role": "user", "content": "Go on."}]
        return {"model": MODEL, "stream": True, "messages": messages}


@dataclass(frozen=True)
class Answer:
    """Seconds to the first words; the characters after those, and their seconds."""

    first: float
    characters: int
    seconds: float


def main() -> int:
    options = arguments()
    try:
        with running() as (raw, ours):
            asyncio.run(crowd(ours, 2))  # what is imported at the first question
            head = f"{'first token p50':>17}{'p95':>9}{'characters/s each':>20}"
            print(f"{'streams':>7}  {'':<10}{head}")
            for streams in options.streams:
                measure(raw, ours, streams)
    except (httpx.HTTPError, OSError, RuntimeError, TimeoutError) as error:
        print(f"streaming benchmark failed: {error}", file=sys.stderr)
        return 1
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", nargs="+", type=int, default=[50, 200])
    return parser.parse_args()


@contextmanager
def running() -> Iterator[tuple[Target, Target]]:
    """The stand-in and the product before it."""
    (port,) = product.free_ports(1)
    command = [sys.executable, "-m", "tests.stand_ins.openai_server"]
    command += ["--port", str(port), "--pace", str(PACE)]
    stand_in = subprocess.Popen(command, cwd=product.HERE, stdout=subprocess.PIPE, text=True)
    try:
        assert stand_in.stdout is not None
        stand_in.stdout.readline()
        os.environ["CODEINFO_OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
        with (
            tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary,
            product.serving(Path(temporary) / "data", []) as client,
        ):
            own = int(client.base_url.port or 0)
            yield (
                Target("raw", port, "/v1/chat/completions", b'"content": "', b"[DONE]"),
                Target("codeinfo", own, "/chat", b'"token", "content": "', b'"complete"'),
            )
    finally:
        stand_in.terminate()
        stand_in.wait()


# --- measuring ------------------------------------------------------------------------------------


def measure(raw: Target, ours: Target, streams: int) -> None:
    """One row each, the raw client's from both sides of ours."""
    before = asyncio.run(crowd(raw, streams))
    own = asyncio.run(crowd(ours, streams))
    after = asyncio.run(crowd(raw, streams))
    print_rows(streams, [*before, *after], own)


async def crowd(target: Target, streams: int) -> list[Answer]:
    """The answers of so many streams, begun evenly over the time of one answer."""
    gap = ANSWER_SECONDS / streams
    tasks = (stream(target, number, number * gap) for number in range(streams))
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [answer for answers in await asyncio.gather(*tasks) for answer in answers]


async def stream(target: Target, number: int, wait: float) -> list[Answer]:
    await asyncio.sleep(wait)
    name = f"{time.monotonic_ns()}-{number}"
    return [await ask(target, f"{name}-{n}") for n in range(ANSWERS)][1:]


async def ask(target: Target, number: str) -> Answer:
    """One question on a connection of its own; no more of its answer is read than is counted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    body = json.dumps(target.body(number)).encode()
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nConnection: close\r\n"
        f"Accept: text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    started = time.perf_counter()
    writer.write(head.encode() + body)
    try:
        return await listen(reader, target, started)
    finally:
        writer.close()


async def listen(reader: asyncio.StreamReader, target: Target, started: float) -> Answer:
    characters, first, last, rest = 0, 0.0, 0.0, b""
    whole = False
    while data := await reader.read(1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        found = sum(characters_in(line, target) for line in lines)
        whole = whole or any(target.end in line for line in lines)
        if found:
            last = time.perf_counter()
            characters += found if first else 0
            first = first or last
    if not whole or not characters:
        raise RuntimeError(f"{target.name}: an answer ended early, after {characters} characters")
    return Answer(first - started, characters, last - first)


def characters_in(line: bytes, target: Target) -> int:
    """How many characters of the answer a line holds: the stand-in says none that JSON escapes."""
    _, mark, words = line.partition(target.words)
    return words.index(b'"') if mark else 0


# --- the table ------------------------------------------------------------------------------------


def print_rows(streams: int, raw: Sequence[Answer], ours: Sequence[Answer]) -> None:
    """Of both: first token in ms, characters a second of a stream, and what was added or lost."""
    rows = {name: figures(answers) for name, answers in (("raw", raw), ("codeinfo", ours))}
    for name, (p50, p95, rate) in rows.items():
        print(f"{streams:>7}  {name:<10}{p50:>14.1f} ms{p95:>6.1f} ms{rate:>20.1f}")
    (raw50, raw95, raw_rate), (own50, own95, own_rate) = rows.values()
    added = f"{own50 - raw50:>+14.1f} ms{own95 - raw95:>+6.1f} ms{own_rate / raw_rate:>19.0%}"
    print(f"{streams:>7}  {'added':<10}{added}", flush=True)


def figures(answers: Sequence[Answer]) -> tuple[float, float, float]:
    firsts = sorted(answer.first * 1000 for answer in answers)
    rate = median(answer.characters / answer.seconds for answer in answers)
    return median(firsts), quantiles(firsts, n=20)[-1], rate


if __name__ == "__main__":
    raise SystemExit(main())
