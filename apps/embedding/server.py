"""Embeddings of servers with OpenAI's `/v1/embeddings` API, such as LM Studio."""

import asyncio
import logging
import math
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import httpx
import numpy as np

from apps.core.config import config
from apps.core.errors import InvalidInput, Unavailable
from apps.core.http.replies import MAX_BYTES
from apps.embedding.fitting import Fitting
from apps.embedding.replies import failure, most_bytes, read_vectors, unavailable
from apps.embedding.retry import RetryPolicy
from apps.embedding.servers import UNREACHABLE, ask_models, unreachable
from apps.embedding.texts import estimate_tokens, head
from apps.embedding.types import EmbeddingText, Vectors
from apps.embedding.wire import wire
from apps.servers.types import Server

logger = logging.getLogger("codeinfo.ingest")
Result = TypeVar("Result")

# Requests in flight to one server.
CONCURRENCY = 4


@dataclass(frozen=True)
class CallLimits:
    """How long a try may be silent, how many there are, and what each may take in all."""

    timeout: httpx.Timeout
    tries: int
    seconds: float


# A batch may take long on a server without a GPU; a question has somebody waiting.
FOR_DOCUMENTS = CallLimits(httpx.Timeout(30.0, connect=5.0, read=180.0), tries=5, seconds=600.0)
FOR_QUERY = CallLimits(httpx.Timeout(10.0, connect=5.0, read=30.0), tries=2, seconds=60.0)
# Questions of fewer tokens fit any model, so its limit need not be asked for.
SAFE_QUERY_TOKENS = 256


class ServerEmbedder:
    """The Embedder of one model of a server. Batches are sent concurrently."""

    def __init__(self, server: Server, model: str) -> None:
        self._server = server
        self._model = model
        self._lock = threading.Lock()
        self._calls: set[Future[Any]] = set()
        self._closed = False
        self._dimension: int | None = None
        self._fitting = Fitting()

    @property
    def id(self) -> str:
        return f"{self._server.kind}:{self._model}"

    @cached_property
    def max_tokens(self) -> int:
        """The context length that the server lists, else that of the setting, less the margin. The
        server is asked once."""
        context = self._context_length() or config().ingest_fallback_tokens
        return math.floor(context * config().ingest_token_margin)

    @property
    def cut_texts(self) -> int:
        return self._fitting.cut_texts

    def _context_length(self) -> int | None:
        try:
            models = self._run(ask_models(self._server))
        except Unavailable as error:
            logger.warning("no model list", extra={"context": {"reason": error.message}})
            return None
        return next((model.context_length for model in models if model.id == self._model), None)

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        """See Embedder. Raises InvalidInput for a text that is too long, since the server would
        truncate it silently. `texts.split_to_fit` splits chunks before."""
        joined = [text.joined() for text in texts]
        for text, whole in zip(texts, joined, strict=True):
            # A character has at most four tokens, so short texts need no estimate.
            if len(whole) > self.max_tokens // 4 and estimate_tokens(whole) > self.max_tokens:
                raise InvalidInput(f"A text of {text.path} is longer than {self.id} takes")
        if not joined:
            return np.zeros((0, self._dimension or 0), np.float32)
        size = min(config().embedding_batch, self._fitting.texts)
        batches = [joined[start : start + size] for start in range(0, len(joined), size)]
        parts = self._run(self._embed_all(batches))
        return np.concatenate(parts)

    def embed_query(self, text: str) -> Vectors:
        """See Embedder. A query that is too long is truncated."""
        if estimate_tokens(text) > SAFE_QUERY_TOKENS:
            text = head(text, self.max_tokens)
        vectors = self._run(self._fitting.embed([text], partial(self._embed, limits=FOR_QUERY)))
        return vectors[0]  # type: ignore[no-any-return]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the event loop and wait for it. `close` cancels it."""
        with self._lock:
            if self._closed:
                work.close()
                raise unavailable("The embedder was closed")
            call = wire().submit(work)
            self._calls.add(call)
        try:
            return call.result()
        except CancelledError:
            raise unavailable("The embedder was closed") from None
        finally:
            with self._lock:
                self._calls.discard(call)

    async def _embed_all(self, batches: Sequence[list[str]]) -> list[Vectors]:
        gate = asyncio.Semaphore(CONCURRENCY)

        async def one(batch: list[str]) -> Vectors:
            async with gate:
                send = partial(self._embed, limits=FOR_DOCUMENTS)
                return await self._fitting.embed(batch, send)

        tasks = [asyncio.create_task(one(batch)) for batch in batches]
        try:
            return await asyncio.gather(*tasks)
        finally:
            # The first failure fails the call. The other batches are cancelled.
            for task in tasks:
                task.cancel()

    async def _embed(self, batch: Sequence[str], limits: CallLimits) -> Vectors:
        attempts, client = RetryPolicy(limits.tries), wire().client(self._server)
        while True:
            retry_after = None
            try:
                async with asyncio.timeout(limits.seconds):
                    answer = await client.post(
                        f"{self._server.api}/embeddings",
                        json={"model": self._model, "input": list(batch)},
                        headers=self._server.headers,
                        timeout=limits.timeout,
                        extensions={MAX_BYTES: most_bytes(len(batch))},
                    )
            except UNREACHABLE as problem:
                error = unreachable(self._server, problem)
            else:
                if answer.status_code == 200:
                    return self._checked(read_vectors(answer.content, len(batch)))
                error = failure(self.id, answer.status_code, answer.content, self._server)
                retry_after = answer.headers.get("Retry-After")
            await attempts.wait_before_retry(error, retry_after)

    def _checked(self, vectors: Vectors) -> Vectors:
        """The vectors. Raises Unavailable if their dimension differs from that of earlier ones."""
        self._dimension = self._dimension or vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise unavailable(
                f"{self.id} gave vectors of {vectors.shape[1]} numbers after {self._dimension}"
            )
        return vectors
