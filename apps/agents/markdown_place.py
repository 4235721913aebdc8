"""Where in a Markdown text the next character stands: in code, in quotes, in a sentence."""

FENCES = ("```", "~~~")
# Of a line, so many characters are looked at.
_MAX_LINE = 300
_CLOSING = {"`": "`", "'": "'", '"': '"', "“": "”", "‘": "’", "«": "»", "„": "“"}
_SENTENCE_ENDS = ".!?:…。！？"


class MarkdownPlace:
    """Reads a text in fragments of any size."""

    def __init__(self) -> None:
        self.line = ""  # the beginning of the current line
        self._ticks = 0  # backticks in it
        self._fence = ""  # of the code block
        self._last = self._last_word = ""  # the last character, and the last one not blank

    def feed(self, text: str) -> None:
        first, *others = text.split("\n")
        self._extend(first)
        for part in others:
            self._end_line()
            self._extend(part)
        self.note(text)

    def note(self, text: str) -> None:
        """Read a text that is no part of the Markdown but stands before what follows."""
        self._last = text[-1:] or self._last
        self._last_word = text.rstrip()[-1:] or self._last_word

    @property
    def in_code(self) -> bool:
        return bool(self._fence) or self._ticks % 2 == 1

    def in_quotes(self, following: str) -> bool:
        """Whether quotes or backticks surround what stands between here and `following`."""
        return bool(following) and _CLOSING.get(self._last) == following

    def in_sentence(self, following: str) -> bool:
        """Whether what stands between here and `following` is a word of a sentence."""
        return (
            bool(self.line.strip())
            and self._last in " ("
            and self._last_word not in _SENTENCE_ENDS
            and following in (" ", ",", ";", ".", ")")
        )

    def _extend(self, part: str) -> None:
        self._ticks += part.count("`")
        self.line += part[: _MAX_LINE - len(self.line)]

    def _end_line(self) -> None:
        line = self.line.lstrip(" \t>")
        if line.startswith(FENCES) and not self._fence:
            self._fence = line[:3]
        elif self._fence and line.startswith(self._fence) and not line.strip(" \t`~"):
            self._fence = ""
        self.line, self._ticks = "", 0
