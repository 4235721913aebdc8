"""Which lines of a commit's text are the lines of another text of the same file."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

# Comparing takes about the product of both numbers of lines, 1 s for so many, if few lines are
# alike. A line that is there more often begins no match: each takes another look at all of them.
MOST, MOST_ALIKE = 4_000_000, 8


def line_numbers(ours: Sequence[str], theirs: Sequence[str]) -> list[int]:
    """Return for each of our lines the number of the same line in their text, 1-based; 0 for none.

    If too much differs, nothing between the common beginning and end is the same.
    """
    shorter = min(len(ours), len(theirs))
    start = next((n for n in range(shorter) if ours[n] != theirs[n]), shorter)
    rest = shorter - start
    end = next((n for n in range(rest) if ours[-n - 1] != theirs[-n - 1]), rest)
    numbers = [*range(1, start + 1), *([0] * (len(ours) - start))]
    for back in range(1, end + 1):
        numbers[-back] = len(theirs) + 1 - back
    left, right = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    if left and right and len(left) * len(right) <= MOST:
        alike = {line for line, count in Counter(right).items() if count > MOST_ALIKE}
        matcher = SequenceMatcher(alike.__contains__, left, right, autojunk=False)
        for block in matcher.get_matching_blocks():
            for offset in range(block.size):
                numbers[start + block.a + offset] = start + block.b + offset + 1
    return numbers
