"""The tokens of source text, from a process that can be killed.

Many of Pygments' lexers take quadratic time or worse: some need seconds for 8,000 newlines. In this
process they would hold the interpreter lock meanwhile.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence

from apps.browse.lexing import all_lexed, lexed
from apps.core.concurrency.computed import Ended, computed
from apps.core.errors import CodeinfoError

# Time limit of one text. Files that people write take a tenth of it, even large ones.
SECONDS = 2.0
# Time limit of several texts that are lexed one by one.
MAX_SECONDS = 5.0
# After MAX_TIMEOUTS texts within TIMEOUT_WINDOW seconds the lexers are not used until it ends: an
# answer may contain fifty texts.
MAX_TIMEOUTS, TIMEOUT_WINDOW = 3, 60.0
# Texts that timed out and are not tried again.
MAX_REMEMBERED = 256
# What a text may have done to the process.
LOST = ("TIMED_OUT", "PROCESS_LOST")

Tokens = Sequence[tuple[str, str]]


class Lexers:
    """Lexes texts, and remembers which take too long. Thread-safe."""

    def __init__(self) -> None:
        # By lexer and hash of the text: when it timed out.
        self._timeouts: OrderedDict[tuple[str, int], float] = OrderedDict()

    def tokens(self, text: str, lexer: str) -> Tokens:
        """(CSS class, text) of each token, by Pygments' lexer of that name. On a failure or timeout
        the text is one token without a class. Raises Ended."""
        plain = (("", text),)
        key = (lexer, hash(text))
        if key in self._timeouts or self._is_suspended():
            return plain
        try:
            return computed(SECONDS, lexed, text, lexer)
        except Ended:
            raise
        except CodeinfoError as error:
            if error.code in LOST:
                self._timeouts[key] = time.monotonic()
                while len(self._timeouts) > MAX_REMEMBERED:
                    self._timeouts.popitem(last=False)
            return plain

    def all_tokens(self, texts: Sequence[tuple[str, str]]) -> Sequence[Tokens]:
        """`tokens` of several texts, each with its lexer, by one call of the process. If that
        fails, or one of them is known to take too long, by a call for each text; those that are
        left after MAX_SECONDS are plain."""
        slow = any((lexer, hash(text)) in self._timeouts for text, lexer in texts)
        if len(texts) > 1 and not slow and not self._is_suspended():
            try:
                return computed(SECONDS, all_lexed, texts)
            except Ended:
                raise
            except CodeinfoError as error:
                if error.code not in LOST:
                    return [(("", text),) for text, _ in texts]
        until = time.monotonic() + MAX_SECONDS
        return [
            self.tokens(text, lexer) if time.monotonic() < until else (("", text),)
            for text, lexer in texts
        ]

    def _is_suspended(self) -> bool:
        since = time.monotonic() - TIMEOUT_WINDOW
        latest = [at for at in list(self._timeouts.values())[-MAX_TIMEOUTS:] if at > since]
        return len(latest) == MAX_TIMEOUTS


lexers = Lexers()
