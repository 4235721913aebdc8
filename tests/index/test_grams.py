"""The n-gram index: it never loses a text that matches, whatever happens to its files."""

import os
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.index.changes import sweep_due
from apps.index.grams import (
    ANY,
    GramStore,
    GramWriter,
    Required,
    grams_of,
    having,
    line_breaks_of,
    literals_of,
    normalized,
    required_by,
)
from apps.index.grams import segments as segments_module
from apps.index.grams import store as store_module
from apps.index.grams import strings as strings_module
from apps.index.grams.expressions import MANY
from apps.index.grams.required import TRIGRAM
from apps.index.grams.store import pairs_of, pieces_of
from apps.index.texts import TextStore
from apps.lookup.texts.table import Candidates

TEXTS = [
    "def moor(ship):\n    return SHIP",
    "class Harbour:\n\tberth = 'é'\n",
    "uv__io_poll(loop, timeout);",
    "",
    "ab",
    "Kelvin \u212a and long \u017f",
    *(f"entry_{number} = {number * 37}\nreturn {number}" for number in range(300)),
]


def keyed(texts: Iterable[str]) -> dict[str, str]:
    return {sha256(text.encode()).hexdigest(): text for text in texts}


@pytest.fixture
def grams(tmp_path: Path) -> GramStore:
    return GramStore(tmp_path / "grams")


@pytest.fixture
def texts(tmp_path: Path) -> TextStore:
    store = TextStore(tmp_path / "texts")
    store.add(keyed(TEXTS))
    return store


def candidates(grams: GramStore, pattern: str, **options: bool) -> set[str]:
    """The indexed texts that may match."""
    required, texts = required_by(pattern, **options), keyed(TEXTS)
    found: set[str] = set()
    for segment in grams.segments():
        names = [each.ljust(32, b"\0").hex() for each in segment.keys.tolist()]
        found |= {texts[names[number]] for number in segment.matching(required).texts.tolist()}
    return found


@pytest.mark.parametrize(
    ("pattern", "some", "others"),
    [
        ("uv__io_poll", [TEXTS[2]], TEXTS[:2]),
        ("out", [TEXTS[2]], TEXTS[:2]),
        ("HIP", [TEXTS[0]], TEXTS[1:5]),
        (r"t\);|x[yz]w", [TEXTS[2]], TEXTS[:2]),
        ("moor|Harbour", TEXTS[:2], TEXTS[2:5]),
        (r"uv__\w+poll", [TEXTS[2]], TEXTS[:2]),
        (r"(?i)HARBOUR", [TEXTS[1]], TEXTS[2:4]),
        (r"entry_(7|8)\b", [TEXTS[13], TEXTS[14]], TEXTS[:5]),
        (r"[mM]oor", [TEXTS[0]], TEXTS[1:4]),
        ("'é'", [TEXTS[1]], TEXTS[2:4]),
        ("(?i)kelvin k", [TEXTS[5]], TEXTS[:4]),
        (r"ret{0}urn|moo{1}r(?:x|y)?", [TEXTS[0]], TEXTS[1:4]),
        (r"^\s+berth\s*=", [TEXTS[1]], [TEXTS[0], *TEXTS[2:5]]),
        (r"def\s+moor", [TEXTS[0]], TEXTS[1:4]),
        ("\treturn  SHIP", [TEXTS[0]], TEXTS[1:4]),
        (r"Harbour[ \t]*:", [TEXTS[1]], [TEXTS[0], *TEXTS[2:4]]),
        (r"timeout\);$", [TEXTS[2]], TEXTS[:2]),
        (r"^ab$", [TEXTS[4]], TEXTS[:4]),
        (r"\Auv|\w HIP\z|^cla", TEXTS[1:3], [TEXTS[0], *TEXTS[3:5]]),
    ],
)
def test_texts_that_may_match_are_found_and_others_are_not(
    grams: GramStore, texts: TextStore, pattern: str, some: list[str], others: list[str]
) -> None:
    grams.maintain(texts)
    found = candidates(grams, pattern)
    assert found >= set(some) and found.isdisjoint(others)


def test_of_strings_that_contain_each_other_the_shortest_is_required() -> None:
    assert required_by("(?:harbour|berth)_?(?:s|oe)?") == required_by("harbour|berth")
    assert required_by("ab|abcd") == ANY


def test_a_part_that_is_partly_unknown_is_not_taken_for_the_rest_of_it() -> None:
    assert not satisfied(required_by("moor(?:[ab].c)ship"), set())
    has = has_grams(b"moorabcship")
    assert satisfied(required_by("moor(?:[ab].c)ship"), has)


@pytest.mark.parametrize(
    ("pattern", "breaks"),
    [
        (r"a[^\n]*\n[^\n]*b", 1),
        (r"a.*b[\w.]+[^\s]*$", 0),
        (r"a\nb|(?:\n){1}c|\Qd\E", MANY),
        (r"a\n\s?b", 2),
        (r"(?s)a.b", 1),
        (r"a[^x]b", 1),
        *(
            (pattern, MANY)
            for pattern in (r"a\s+b", r"[^a]+", r"(?s:a.*)", r"\Q\n\n\E(" + "(" * 60)
        ),
        *((pattern, MANY) for pattern in (r"\W*", r"[\D]+", r"[[:space:]]{2}", r"[\x00-\x20]*")),
    ],
)
def test_the_line_breaks_of_a_match_are_counted(pattern: str, breaks: int) -> None:
    assert line_breaks_of(pattern) == breaks


@pytest.mark.parametrize(
    "pattern", ["", "ab", "a.b", ".*", "abc|x", "(abc)?", "(abc)*", r"\w{9}", "(?i)é", "[^abc]+"]
)
def test_a_pattern_without_three_fixed_characters_requires_nothing(pattern: str) -> None:
    assert required_by(pattern) == ANY


def test_the_literals_of_a_pattern_are_its_fixed_parts() -> None:
    assert literals_of(r"\buv__io_poll\s*\(") == ["uv__io_poll", "("]
    assert literals_of("a.b", fixed=True) == ["a.b"]
    assert literals_of("moor|Harbour") == []
    assert literals_of("x" + "(" * 60 + ")" * 60) == []


PIECE = st.sampled_from(
    [
        *["moor", "ship", "SHIP", "é", "K", "return", r"\w", r"\s", ".", "[a-f]", "[^x]", r"\."],
        *["_", "io", r"\d", "(", "1", r"\x41", r"\bpoll\b", "(?i:HAR)", r"\Qa.b\E", "\\)"],
        *["^", "$", " ", "\t", r"[ \t]", r"[\s:]", "[[:space:]]", "[[:blank:]a]", r"\A", r"\z"],
        *["abc", "  ab", r"\x20", r"[^\s]", r"\n", r"\r", "(?s:.)", "\u2003", r"\Q  \E", "(?-m:$)"],
    ]
)
TREE = st.recursive(
    PIECE.filter(lambda piece: piece not in "("),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{0,3}", "{1,}", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=12,
)


WORDS = ["abc", "ab", "moor", "ship", "SHIP", "é", "k", "\u212a", "return", "_", "io", "har", "a.b"]
SPACES = [" ", "  ", "\t", " \t", "\r", "\f", "\v", "\u2003", "\xa0", "\n", "\n\n", "\n ", "\r\n"]
TEXT = st.lists(st.sampled_from([*WORDS, *SPACES, "(", ")", "1", ":"]), max_size=12).map("".join)


@settings(max_examples=600)
@given(TREE, st.booleans(), st.booleans(), st.lists(TEXT, max_size=8))
def test_a_text_that_matches_always_has_what_is_required(
    pattern: str, ignore_case: bool, multiline: bool, more: list[str]
) -> None:
    options = re2.Options()
    options.log_errors, options.case_sensitive = False, not ignore_case
    options.never_nl = not multiline
    compiled = re2.compile(f"(?m){pattern}".encode(), options)
    required = required_by(pattern, ignore_case=ignore_case, multiline=multiline)
    breaks = line_breaks_of(pattern)
    for text in TEXTS[:12] + more:
        if found := compiled.search(text.encode()):
            has = has_grams(text.encode())
            assert satisfied(required, has), (pattern, text)
            assert not multiline or breaks == MANY or found.group().count(b"\n") <= breaks


@settings(max_examples=400)
@given(TREE, st.booleans(), st.lists(TEXT, min_size=3, max_size=9))
def test_a_match_in_two_lines_is_in_one_piece(
    pattern: str, multiline: bool, parts: list[str]
) -> None:
    options = re2.Options()
    options.log_errors, options.never_nl = False, not multiline
    compiled = re2.compile(f"(?m){pattern}".encode(), options)
    required = required_by(pattern, multiline=multiline)
    text = "\n".join(parts).encode()
    with patch.object(store_module, "PIECE_BYTES", 6):
        pieces = pieces_of(text)
    assert all(text[start - 1 : start] == b"\n" for start, _ in pieces[1:])
    if compiled.search(text) and (not multiline or line_breaks_of(pattern) <= 1):
        pairs = pairs_of(text, pieces, 7).tolist()
        found = [
            satisfied(required, {pair >> 16 for pair in pairs if pair & 0xFFFF == number})
            for number in range(7, 7 + len(pieces))
        ]
        assert any(found), (pattern, text)


def test_a_text_is_chosen_by_what_is_together_in_a_piece(
    grams: GramStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PIECE_BYTES", 1_000)
    far = b"moored\n" + b"x = 1\n" * 1_000 + b"harbour\n"
    near = b"y = 2\n" * 1_000 + b"moored in\na harbour\n" + b"y = 2\n" * 1_000
    grams.build(["0" * 64, "1" * 64, "2" * 64], lambda _: {"1" * 64: far, "2" * 64: near})
    (segment,) = grams.segments()
    required = required_by(r"moored.*\n.*harbour", multiline=True)
    texts, pieces = segment.matching(required)
    assert texts.tolist() == [1] and pieces is not None
    spans = segment.spans_of(pieces)
    assert spans.texts.tolist() == [1]
    ((start, end),) = spans.spans.tolist()
    assert b"moored in\na harbour" in near[start:end] and end < start + 1_100
    every = np.arange(segment.pieces)
    whole = Candidates(every, found=[(segment, every, np.array([4, -1]))]).ranges
    assert whole.keys.tolist() == [-1, 4] and whole.ranges == [(0, len(near)), (0, len(far))]
    assert segment.matching(required, in_piece=False).texts.tolist() == [0, 1]


def test_a_text_of_any_size_fits_in_one_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_PIECES", 40)
    monkeypatch.setattr(store_module, "PIECE_BYTES", 10)
    for text in (b"", b"a", b"abc\n" * 3, b"\n" * 999, b"abc\n" * 5_000, b"x" * 999 + b"\na"):
        assert 1 <= len(pieces_of(text)) <= 40, text[:9]


@settings(max_examples=300)
@given(TEXT, TEXT, TEXT, st.booleans())
def test_a_text_has_what_each_part_of_it_requires(
    before: str, part: str, after: str, ignore_case: bool
) -> None:
    has = has_grams(f"{before}{part}{after}".encode())
    required = required_by(part, fixed=True, ignore_case=ignore_case, multiline=True)
    assert satisfied(required, has)


def has_grams(text: bytes) -> set[int]:
    return {int(pair) >> 16 for pair in pairs_of(text, [(0, len(text))], 0)}


def satisfied(required: Required, has: set[int]) -> bool:
    prefixes = {gram >> 8 for gram in has}
    return all(
        (gram - TRIGRAM) >> 8 in prefixes if gram & TRIGRAM else gram in has
        for gram in required.grams
    ) and all(any(satisfied(part, has) for part in parts) for parts in required.either)


# --- the files ------------------------------------------------------------------------------------


def test_texts_are_indexed_once_however_often_they_are_added(
    grams: GramStore, texts: TextStore
) -> None:
    writer = GramWriter(grams)
    writer.add({key: text.encode() for key, text in keyed(TEXTS).items()})
    assert grams.missing(keyed(TEXTS)) == list(keyed(TEXTS)), "nothing is written yet"
    writer.flush()
    size = grams.size()
    writer.add({key: text.encode() for key, text in keyed(TEXTS).items()})
    writer.flush()
    grams.maintain(texts)
    assert (grams.size(), grams.missing(keyed(TEXTS))) == (size, [])


def test_many_small_segments_are_merged_and_deleted_texts_are_left_out(
    grams: GramStore, texts: TextStore
) -> None:
    every = list(keyed(TEXTS).items())
    for start in range(0, len(every), 10):
        writer = GramWriter(grams)
        writer.add({key: text.encode() for key, text in every[start : start + 10]})
        writer.flush()
    assert grams.is_fragmented()
    expected = candidates(grams, "entry_2")
    grams.maintain(texts)
    assert len(grams.segments()) < 8 and not grams.is_fragmented()
    assert candidates(grams, "entry_2") == expected
    kept = keyed(TEXTS[:5])
    texts.collect(lambda keys: set(keys) & kept.keys())
    grams.maintain(texts)
    assert {key for each in grams.segments() for key in each.hex_keys} == kept.keys()


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_a_segment_is_the_same_whatever_is_encoded_at_once(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"line {number} of {number % 7}\n" for number in range(300)]
    text = "".join(lines).encode()
    pieces = [(at, at + 400) for at in range(0, len(text) - 400, 200)]
    key = sha256(text).digest()
    segments_module.write(tmp_path / "whole", {key: pieces}, pairs_of(text, pieces, 0))
    monkeypatch.setattr(segments_module, "BLOCK_PAIRS", size)
    segments_module.write(tmp_path / "blocks", {key: pieces}, pairs_of(text, pieces, 0))
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_large_index_has_several_segments(
    grams: GramStore, texts: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_PAIRS", 500)
    monkeypatch.setattr(store_module, "MAX_PIECES", 40)
    grams.maintain(texts)
    assert len(grams.segments()) >= 8
    assert max(each.texts for each in grams.segments()) <= 40
    assert candidates(grams, "entry_29") == {text for text in TEXTS if "entry_29" in text}


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_segment_is_built_again(grams: GramStore, texts: TextStore, damage: str) -> None:
    grams.maintain(texts)
    (segment,) = grams.segments()
    data = segment.path.read_bytes()
    spoiled = {
        "cut": data[:-5],
        "flip": data[:200] + bytes([data[200] ^ 4]) + data[201:],
        "empty": b"",
        "other": b"x" * len(data),
    }
    segment.path.write_bytes(spoiled[damage])
    (segment.path.parent / "0.new").write_bytes(b"unfinished")
    grams.close()
    assert grams.segments() == []
    grams.maintain(texts)
    assert grams.missing(keyed(TEXTS)) == []
    assert not list(segment.path.parent.glob("*.new")) and not segment.path.exists()


def test_a_segment_that_somebody_wrote_to_is_compared_again_and_the_worker_told(
    grams: GramStore, texts: TextStore
) -> None:
    grams.maintain(texts)
    (segment,) = grams.segments()
    sweep_due.clear()
    os.utime(segment.path, ns=(0, 0))
    assert len(grams.segments()) == 1  # it is whole
    with segment.path.open("r+b") as file:
        file.seek(300)
        file.write(b"harm")
    assert grams.segments() == [] and sweep_due.is_set()


def test_an_interrupted_build_keeps_the_segments_that_are_finished(
    grams: GramStore, texts: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "TEXTS_AT_ONCE", 50)
    monkeypatch.setattr(store_module, "MAX_PIECES", 40)
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        grams.maintain(texts, check)
    missing = grams.missing(keyed(TEXTS))
    assert 0 < len(missing) < len(keyed(TEXTS))
    grams.maintain(texts)
    assert grams.missing(keyed(TEXTS)) == []


def test_matching_is_what_a_scan_finds(grams: GramStore, texts: TextStore) -> None:
    grams.maintain(texts)
    for number in (3, 37, 299):
        pattern = f"entry_{number} "
        matching = {text for text in TEXTS if re.search(pattern, text)}
        assert matching <= candidates(grams, pattern, fixed=True)


@pytest.mark.parametrize("pairs", [6_000_000, 1_500])
def test_the_pieces_that_have_each_of_some_strings_are_those_with_all_its_n_grams(
    grams: GramStore, texts: TextStore, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    monkeypatch.setattr(store_module, "MAX_PAIRS", pairs)
    monkeypatch.setattr(strings_module, "SEGMENTS_AT_ONCE", 2)
    monkeypatch.setattr(strings_module, "LISTS_AT_ONCE", 3)
    grams.maintain(texts)
    strings = ["entry_7", "return 1", "class harbour", "nowhere at all", "a b", "x\ny"]
    wanted = [grams_of(normalized(string.encode())) for string in strings]
    segments = grams.segments()
    assert (len(segments) > 2) == (pairs < 6_000_000)
    of_keys = keyed(TEXTS)
    found: list[set[str]] = [set() for _ in strings]
    for some in having(segments, wanted, lambda has: np.flatnonzero(has.any(axis=0))):
        for of_string, mask in zip(found, some.masks, strict=True):
            pieces = np.flatnonzero(mask).tolist()
            of_string |= {of_keys[some.place(piece)[0].hex()] for piece in pieces}
        assert some.counts.sum(axis=1).tolist() == some.masks.sum(axis=1).tolist()
    scanned = [
        {text for text in TEXTS if string in text.lower() and len(string) > 3} for string in strings
    ]
    assert found == scanned
    assert [len(texts) for texts in scanned] == [11, 111, 1, 0, 0, 0]
    assert not [*having(segments, wanted, lambda has: np.flatnonzero(has.all(axis=0)))]
