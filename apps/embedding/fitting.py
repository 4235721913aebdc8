"""Requests that fit a server whose limits are not known: fewer texts, then shorter ones.

Small servers refuse a batch above their limit (413, 422) and a text above their context (400,
llama.cpp: 500). Neither the status nor the words say surely which. So a refused batch is halved
down to one text, and one text is cut until the server takes it. What was learnt holds for the life
of the embedder, which is one run.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from apps.embedding.replies import TooLarge
from apps.embedding.texts import estimate_tokens, head
from apps.embedding.types import Vectors

logger = logging.getLogger("codeinfo.ingest")

Send = Callable[[Sequence[str]], Awaitable[Vectors]]

# A shorter text is refused for another reason. In estimated tokens.
MIN_TOKENS = 32
# What remains of a refused text.
SHARE = 0.75
NO_LIMIT = 1 << 30


class Fitting:
    """The limits of one server, as far as its refusals tell.

    texts: the most texts of a request.
    tokens: the longest text, in estimated tokens.
    cut_texts: how many texts were cut.
    """

    def __init__(self) -> None:
        self.texts = self.tokens = NO_LIMIT
        self.cut_texts = 0

    async def embed(self, batch: Sequence[str], send: Send) -> Vectors:
        """Return the vectors of the texts, float32 (n, dimension), with requests that `send` takes.

        Raises TooLarge if even MIN_TOKENS of one text are refused, and what else `send` raises.
        """
        if len(batch) == 1:
            return await self._embed_text(batch[0], send)
        if len(batch) > self.texts or any(self._head(text) != text for text in batch):
            return await self._embed_halves(batch, send)
        try:
            return await send(batch)
        except TooLarge:
            cut_before = self.cut_texts
            vectors = await self._embed_halves(batch, send)
            if self.cut_texts == cut_before:
                # Both halves were taken as they are: it was the number of texts.
                self.texts = min(self.texts, -(-len(batch) // 2))
            return vectors

    async def _embed_halves(self, batch: Sequence[str], send: Send) -> Vectors:
        middle = -(-len(batch) // 2)
        halves = [await self.embed(half, send) for half in (batch[:middle], batch[middle:])]
        return np.concatenate(halves)

    async def _embed_text(self, text: str, send: Send) -> Vectors:
        part = self._head(text)
        while True:
            try:
                vectors = await send([part])
            except TooLarge:
                tokens = estimate_tokens(part)
                if tokens <= MIN_TOKENS:
                    raise
                if part == text and self.tokens == NO_LIMIT:
                    # A server that refuses this, too, has another reason.
                    await send([head(text, MIN_TOKENS)])
                part = head(part, int(tokens * SHARE))
            else:
                break
        if part != text:
            self.cut_texts += 1
            self.tokens = min(self.tokens, estimate_tokens(part))
        return vectors

    def _head(self, text: str) -> str:
        """The text as far as the server is known to take it."""
        return text if self.tokens == NO_LIMIT else head(text, self.tokens)
