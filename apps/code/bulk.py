"""Which chunks get no vector: those of records, and of very long lines.

They are found by their words, by n-grams and by what they declare. Their vectors would say little
and crowd out code, and there may be very many.
"""

import re
from collections.abc import Sequence

from apps.code.languages import extension_of, known_type
from apps.code.values import Chunk, words

# Extensions of records, of any size.
RECORDS = words("csv tsv psv jsonl ndjson geojson topojson svg po pot ics vcf")
# A larger file of these types, or of an unknown one, holds records, not settings.
BULKY = 100_000  # characters
BULKY_EXTENSIONS = words("json json5 jsonc xml yaml yml sql plist edn")
# Characters at the beginning that tell of what kind a text is.
HEAD = 32_768
# Bytes or characters. If lines are longer, people do not read them.
LONG_LINE = 1_000

# A word list has one entry a line: a word, with numbers after it or not, or numbers. Scripts
# without spaces between words (Thai, Khmer, Chinese, Japanese) are exempt: a sentence looks like a
# word.
LONGEST_WORD = 40
LIST_SHARE = 0.95
BETWEEN_CELLS = re.compile(r"[\s,;|]+")
NUMBER = re.compile(r"[-+\d.:/%eE]+")
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff]")


def have_vectors(
    path: str, text: str, chunks: Sequence[Chunk], *, all_types: bool = False
) -> list[bool]:
    """Whether each chunk of a file gets a vector.

    text: of the file
    all_types: whether the type of the file does not matter
    """
    if not all_types and _holds_records(path, text):
        return [False] * len(chunks)
    kind = known_type(path)
    if (kind is not None and kind.prose) or not is_in_long_lines(text[:HEAD]):
        return [True] * len(chunks)
    return [not _is_of_long_line(chunk, text) for chunk in chunks]


def _holds_records(path: str, text: str) -> bool:
    extension, kind = extension_of(path), known_type(path)
    if extension in RECORDS:
        return True
    if extension in BULKY_EXTENSIONS or kind is None:
        return len(text) > BULKY
    return kind.prose and _is_list(text[:HEAD])


def is_in_long_lines(head: str | bytes) -> bool:
    """Whether most of a text is in lines longer than LONG_LINE. `head`: its beginning."""
    lines = head.split(b"\n") if isinstance(head, bytes) else head.split("\n")
    return 2 * sum(len(line) for line in lines if len(line) > LONG_LINE) > len(head)


def _is_of_long_line(chunk: Chunk, text: str) -> bool:
    """Whether it is a line longer than LONG_LINE, or a part of one."""
    if chunk.start_line != chunk.end_line:
        return False
    end = chunk.offset + len(chunk.text)
    # Of a line of 1 MB, no more is read for each of its chunks.
    first, last = max(0, chunk.offset - LONG_LINE), min(len(text), end + LONG_LINE)
    start, stop = text.rfind("\n", first, chunk.offset), text.find("\n", end, last)
    return (stop if stop >= 0 else last) - (start + 1 if start >= 0 else first) > LONG_LINE


def _is_list(head: str) -> bool:
    """Whether a large text is bulk data (a word list, a table of numbers) and not prose."""
    if len(head) < HEAD:
        return False
    # The last line may be incomplete.
    lines = [line for line in head.split("\n")[:-1] if line.strip()]
    return len(lines) > 1 and sum(map(_is_entry, lines)) >= LIST_SHARE * len(lines)


def _is_entry(line: str) -> bool:
    word, *numbers = BETWEEN_CELLS.split(line.strip(" \t\r,;|"))
    if len(word) > LONGEST_WORD or UNSPACED.search(word):
        return False
    return all(NUMBER.fullmatch(number) for number in numbers)
