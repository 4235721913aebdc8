"""The rule for lines that were cited."""

import pytest

from apps.lookup.citations import Comparison

FILE = """\
import time

LIMIT = 3


def delay(attempt):
    # Twice as long each time.
    return 2**attempt


def retry(call):
    for attempt in range(LIMIT):
        try:
            return call()
        except OSError:
            time.sleep(delay(attempt))
    return None


def again(call):
    if call is None:
        return None
    return retry(call)
""".splitlines()
DELAY, RETRY = (6, 8), (11, 17)
BRACES = ["}"] * 20_000


def changed(old: str, new: str, lines: list[str] = FILE) -> list[str]:
    text = "\n".join(lines)
    assert old in text
    return text.replace(old, new).split("\n")


def moved(first: int, last: int, after: int) -> list[str]:
    block, rest = FILE[first - 1 : last], [*FILE[: first - 1], *FILE[last:]]
    return [*rest[:after], *block, *rest[after:]]


def verdict(now: list[str], span: tuple[int, int], before: list[str] = FILE) -> tuple[str, int]:
    found = Comparison(before, now).finding(*span)
    return found.verdict, found.start or 0


@pytest.mark.parametrize(
    ("now", "span", "found"),
    [
        (FILE, DELAY, ("ok", 6)),
        ([f"{line}  " for line in FILE], DELAY, ("ok", 6)),
        ([f"{line}\r" for line in FILE], DELAY, ("ok", 6)),
        ([f"\t{line}" if line else line for line in FILE], RETRY, ("ok", 11)),
        (["# one", "# two", *FILE], DELAY, ("moved", 8)),
        (FILE[2:], RETRY, ("moved", 9)),
        (moved(10, 17, 5), RETRY, ("moved", 7)),
        (moved(6, 9, 18), DELAY, ("moved", 19)),
        (changed("2**attempt", "3**attempt"), DELAY, ("changed", 0)),
        (changed("    # Twice", "        # Twice"), DELAY, ("changed", 0)),
        ([*FILE[:5], FILE[6], FILE[5], *FILE[7:]], DELAY, ("changed", 0)),
        ([*FILE[:5], *FILE[8:]], DELAY, ("changed", 0)),
        (changed("        try:", "\n        try:"), RETRY, ("changed", 0)),
        (["# nothing", "x = 1"], DELAY, ("gone", 0)),
        ([], DELAY, ("gone", 0)),
    ],
)
def test_a_passage_holds_if_its_lines_are_there_in_order(
    now: list[str], span: tuple[int, int], found: tuple[str, int]
) -> None:
    assert verdict(now, span) == found


@pytest.mark.parametrize(
    ("now", "found"),
    [
        # Line 17, `return None`, stands in line 22 too, deeper.
        (["# more", *FILE], ("moved", 18)),
        ([*FILE[:16], *FILE[17:]], ("changed", 0)),
        (changed("    return None\n\n\n", "    return 0\n\n\n"), ("changed", 0)),
        (moved(11, 17, 0), ("moved", 7)),
        (["    return None"], ("changed", 0)),
    ],
)
def test_a_line_that_occurs_twice_needs_its_surroundings(
    now: list[str], found: tuple[str, int]
) -> None:
    assert verdict(now, (17, 17)) == found


def test_a_copy_does_not_stand_for_a_passage_that_was_altered() -> None:
    altered = changed("2**attempt", "3**attempt")
    assert verdict([*altered, "", *FILE[5:8]], DELAY)[0] == "changed"
    # With what stands around it.
    assert verdict([*altered, "", *FILE[2:11]], DELAY)[0] == "changed"
    # Not even if all its lines were.
    rewritten = changed("attempt", "attempt_number")
    assert verdict([*FILE[10:17], "", *rewritten], RETRY)[0] == "changed"


def test_an_equal_passage_elsewhere_is_not_the_one_that_was_altered() -> None:
    twice = [*FILE, "", "class Other:", *FILE[5:8]]
    altered = [*twice[:7], "    return 0", *twice[8:]]
    assert verdict(altered, DELAY, twice) == ("changed", 0)
    assert verdict(altered, (26, 28), twice) == ("ok", 26)


@pytest.mark.parametrize("span", [(4, 5), (400, 410), (0, 3)])
def test_nothing_is_said_of_blank_lines_and_of_lines_that_were_not_there(
    span: tuple[int, int],
) -> None:
    assert verdict(["# more", *FILE], span) == ("unknown", 0)


def test_blank_lines_around_a_passage_do_not_count() -> None:
    assert verdict(changed("LIMIT = 3\n", "LIMIT = 3\n\n\n"), (5, 9)) == ("moved", 7)


def test_other_scripts_say_as_much_as_latin() -> None:
    before = ["一", "二号", "三号", "四号", "🗃🗄", "🛋🛍", "七"]
    assert verdict(["新", *before], (5, 6), before) == ("moved", 6)
    assert verdict([*before[:4], "🗃🗑", *before[5:]], (5, 5), before) == ("changed", 0)


def test_without_the_rest_of_the_file_a_doubt_is_unknown() -> None:
    window = FILE[2:11]
    known = {"first": 3, "is_whole": False}

    def found(now: list[str]) -> tuple[str, int | None]:
        return tuple(Comparison(window, now, **known).finding(*DELAY))  # type: ignore[arg-type]

    assert found(FILE) == ("ok", 6)
    assert found(["# more", *FILE]) == ("moved", 7)
    assert found(changed("2**attempt", "3**attempt")) == ("changed", None)
    # What stood around it is elsewhere: it may be another one.
    assert found([*FILE[:5], *FILE[9:], "class Other:", *FILE[5:8]]) == ("unknown", None)


def test_lines_of_which_nothing_else_is_known_may_have_been_copied() -> None:
    def found(now: list[str], first: int, last: int) -> str:
        lines = FILE[first - 1 : last]
        return Comparison(lines, now, first=first, is_whole=False).finding(first, last).verdict

    assert found(["# more", *FILE], *RETRY) == "moved"
    rewritten = changed("attempt", "attempt_number")
    assert found([*FILE[10:17], "", *rewritten], *RETRY) == "unknown"
    # Too little to tell from an altered version.
    assert found(["# more", *FILE], 6, 7) == "unknown"
    assert found(FILE, 6, 7) == "ok"


def test_brackets_that_are_indented_with_what_is_around_them_stay() -> None:
    lines = ["if (done) {", "  return;", "}"]
    assert verdict([f"\t{line}" for line in lines], (3, 3), lines) == ("ok", 3)
    assert verdict([*lines[:2], "x = 1", "  }"], (3, 3), lines)[0] == "changed"


@pytest.mark.parametrize(
    ("before", "now", "span"),
    [
        (BRACES, ["x = 1", *BRACES], (10_000, 10_002)),
        (["one", "two", *BRACES, "six"], ["four", "five", *BRACES, "ten"], (10_000, 10_002)),
        ([*BRACES, "one"], ["two", *BRACES, "three"], (2, 20_001)),
    ],
)
def test_many_equal_lines_take_no_time(
    before: list[str], now: list[str], span: tuple[int, int]
) -> None:
    assert verdict(now, span, before)[0] == "changed"
