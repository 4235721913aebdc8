"""The question that a doc comment answers: its first sentence."""

import re

FEWEST_WORDS, MOST_WORDS, MOST_CHARS = 2, 60, 400

_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)")
_ROLE = re.compile(r":[\w:]+:`~?([^`]*)`")
_LINK = re.compile(r"\{@\w+\s+([^}]*)\}")
_COMMAND = re.compile(r"[@\\](?:c|p|a|ref|em|code|brief|short|details|description|summary)\s+")
_TAG = re.compile(r"<[^>]{1,60}>")
_DECORATION = re.compile(r"^\s*(?:/\*+!?|\*+/|\*(?!/)|//[/!]*|#+'?|--+\s*[|^]?|;+|\"\"\"|%+)\s?")
# Comments that begin with these words do not describe the code below them.
_NO_QUESTION = re.compile(
    r"copyright|spdx|licen[sc]e|eslint|tslint|prettier|istanbul|noinspection|todo|fixme|xxx|hack|nolint"
    r"|deprecated|internal|inherit|@|={3}|-{3}|\*{3}|#{3}|region|endregion|pragma|generated|auto-gen"
    r"|see |type:|noqa|pylint|rubocop|phpcs|go:|export |\+build|see also|overrides?\b",
    re.IGNORECASE,
)


def question(doc: str) -> str:
    """The first sentence of a doc comment without markup; "" if it is not a useful question."""
    text = re.split(
        r"\n\s*(?:[@\\](?!c |ref |link |code |brief|short|desc|summary)|:param|:return)",
        "\n" + doc.strip("\n"),
    )[0]
    sentence = _first_sentence(_plain(text))
    words = sentence.split()
    asks = FEWEST_WORDS <= len(words) <= MOST_WORDS and len(sentence) <= MOST_CHARS
    return sentence if asks and not _NO_QUESTION.match(sentence) else ""


def uncommented(lines: list[str]) -> str:
    """The text of comment lines without comment markers."""
    return "\n".join(_DECORATION.sub("", line).removesuffix("*/").rstrip() for line in lines)


def _plain(text: str) -> str:
    summary = re.search(r"<summary>(.*?)(?:</summary>|$)", text, re.DOTALL)
    text = summary.group(1) if summary else text
    text = re.sub(r"<see(?:also)?\s+cref=\"(?:\w:)?([^\"]*)\"\s*/>", r"\1", text)
    for pattern, replacement in ((_ROLE, r"\1"), (_LINK, r"\1"), (_COMMAND, ""), (_TAG, " ")):
        text = pattern.sub(replacement, text)
    return text.replace("`", "").replace("**", "").replace("[`", "").strip()


def _first_sentence(text: str) -> str:
    paragraph = " ".join(re.split(r"\n\s*\n", text.strip())[0].split())
    match = _SENTENCE.match(paragraph)
    return (match.group(1) if match else paragraph).strip()
