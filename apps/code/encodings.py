"""Find the encoding of a text that is neither UTF-8 nor begins with a byte order mark."""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from charset_normalizer import from_bytes

from apps.code.alphabets import ALPHABETS, LATIN, foreign_share
from apps.code.chunking import BOMS, is_utf8

# Names as Python's codecs have them. A file that declares another one is not believed: some codecs
# of Python (`unicode_escape`, `idna`) are no encodings of files.
_DECLARABLE = """
    big5 big5hkscs cp437 cp850 cp866 cp874 cp932 cp949 cp950 cp1250 cp1251 cp1252 cp1253 cp1254
    cp1255 cp1256 cp1257 cp1258 euc_jp euc_jis_2004 euc_kr gb18030 gb2312 gbk iso8859-1 iso8859-2
    iso8859-5 iso8859-7 iso8859-8 iso8859-9 iso8859-15 koi8-r koi8-u mac-roman shift_jis
    shift_jis_2004 shift_jisx0213 tis-620
"""
DECLARABLE = frozenset(_DECLARABLE.split())
# What is guessed. CP932, CP949 and GB 18030 extend Shift-JIS, EUC-KR and GBK. If a text is as
# likely in several, as one with two characters may be, it is in the first.
GUESSED = (
    *("gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1254", "cp1252", "cp1255", "cp1251"),
    *("koi8_r", "cp1250", "iso8859_2", "cp1253", "iso8859_7", "cp1256", "cp874", "iso8859_15"),
    *("cp866", "mac_roman"),
)
WINDOWS = "cp1252"
LATIN_1 = "iso8859-1"
# Those that charset-normalizer does not know, or doubts, are told by their letters: texts with more
# foreign ones are in another encoding.
_BY_LETTERS = tuple(name for name in GUESSED if name in ALPHABETS and name != WINDOWS)
_BY_OTHERS = [name for name in GUESSED if name not in _BY_LETTERS]
_MAX_FOREIGN = 0.25
# Python reads a declaration in the first two lines (PEP 263), Vim in the first and last five.
DECLARING_LINES = 5
# Also `<meta charset=…>`, `@charset "…"` and `<?xml encoding="…"?>`.
_DECLARED = re.compile(
    rb"(?:coding|fenc|charset)[ \t]{0,3}[:=]?[ \t]{0,3}[\"']?([A-Za-z][\w.:-]{1,30})"
)
_MAX_DECLARING_BYTES = 2_000
# Files that agree on an encoding.
MIN_VOTES = 3
# The share of ASCII characters in source code as UTF-16.
_MIN_ASCII = 0.1
_SHORT = 16  # characters
# Characters of two scripts in a word, a CJK character between letters, Cyrillic capitals in a row
# or after a small letter, three letters with accents in a row.
_MIXED = re.compile(
    r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]"
    r"|[A-Za-z][\u2e80-\ud7ff\uff61-\uff9f]{1,3}[a-z]"
    r"|(?<![\u0400-\u04ff])[\u044a\u044c]|[\u0430-\u045f][\u0400-\u042f]|[\u0400-\u042f]{2,3}|[\u00c0-\u00ff\u0152-\u0178]{3,9}"
)


def _rows(first: int, last: int, others: bytes = b"") -> frozenset[int]:
    return frozenset([*range(first, last + 1), *others])


# Encoding → first bytes of frequent characters. Each standard lists these in earlier rows.
_FREQUENT: Mapping[str, frozenset[int]] = {
    "gb18030": _rows(0xB0, 0xD7, b"\xa1\xa3"),
    "big5": _rows(0xA3, 0xC6, b"\xa1"),
    "cp932": _rows(0x88, 0x98, b"\x81\x82\x83"),
    "euc_jp": _rows(0xB0, 0xCF, b"\xa1\xa3\xa4\xa5"),
    "cp949": _rows(0xB0, 0xC8, b"\xa1\xa3"),
    "cp1251": _rows(0xC0, 0xFF, b"\xa8\xb8\xaf\xbf\xaa\xba\xb2\xb3\xab\xbb\x97\x96\xb9"),
    "koi8_r": _rows(0xC0, 0xFF, b"\xa3\xb3"),
    "cp1252": _rows(
        0xC0, 0xFF, b"\x80\x91\x92\x93\x94\x96\x97\x85\xa0\xa7\xa9\xab\xbb\xb0\xbf\xa1"
    ),
}
# Encodings that extend an EUC encoding, whose characters are the frequent ones.
_EXTEND_EUC = ("gb18030", "cp949")
_LAST_BEFORE_EUC = 0xA0
_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})  # categories of Unicode


class EncodingChoice:
    """Decides on the encodings of the files of one run. What several files are in is the encoding
    of the others that may be in it."""

    def __init__(self) -> None:
        self._votes: Counter[str] = Counter()

    def encodings(self, contents: Mapping[str, bytes]) -> dict[str, str]:
        """Return path → encoding, of those files (path → content) that are not UTF-8."""
        possible = {
            path: _possible(data)
            for path, data in contents.items()
            if not (is_utf8(data) or data.startswith(BOMS))
        }
        self._votes.update(names[0] for names in possible.values() if names[0])
        usual = self._usual()
        return {path: usual if usual in names else names[0] for path, names in possible.items()}

    def _usual(self) -> str:
        """The encoding of most files; "" if there is none, or few files are in it."""
        for name, votes in self._votes.most_common(1):
            if votes >= MIN_VOTES and 2 * votes > self._votes.total():
                return name
        return ""


def _possible(data: bytes) -> Sequence[str]:
    """Return the encodings in which `data` may be, the likeliest first. "" is UTF-8 in which a few
    bytes are damaged."""
    if known := utf16_without_mark(data):
        return [known]
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    # Other encodings seldom have what is a character in UTF-8.
    if 2 * damaged <= sum(not character.isascii() for character in text) - damaged:
        return [""]
    if known := declared_encoding(data):
        return [known]
    return guesses(data)


def utf16_without_mark(data: bytes) -> str:
    """Return the name of UTF-16 or UTF-32, as of a codec, if `data` is text in it; else "". It may
    end anywhere."""
    if b"\0" not in data:
        return ""
    for name in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        try:
            text = codecs.getincrementaldecoder(name)().decode(data)
        except UnicodeDecodeError:
            continue
        if _is_text(text):
            return name
    return ""


def _is_text(text: str) -> bool:
    if "\0" in text:
        return False  # most binary files: to count characters takes longer
    ascii_count = sum(character.isascii() for character in text)
    # Few characters may be ASCII by chance, as those of `x = 1` and a NUL.
    least = _MIN_ASCII if len(text) >= _SHORT else 0.5
    return ascii_count > least * len(text) and not any(
        unicodedata.category(character) in _NO_TEXT
        for character in set(text) - set("\t\n\r\f\v\x1a")
    )


def declared_encoding(data: bytes) -> str:
    """Return the encoding that the first or last lines declare, if all bytes are valid in it."""
    lines = data[:_MAX_DECLARING_BYTES].split(b"\n")[:DECLARING_LINES]
    lines += data[-_MAX_DECLARING_BYTES:].split(b"\n")[-DECLARING_LINES - 1 :]
    for match in _DECLARED.finditer(b"\n".join(lines)):
        try:
            name = codecs.lookup(match[1].decode()).name
        except LookupError:
            continue
        if name in DECLARABLE and _is_valid(data, name):
            return name
    return ""


def guesses(data: bytes) -> Sequence[str]:
    """Return the encodings in which `data` may be text, the likeliest first; at least one."""
    # The lines in ASCII, which are most, say nothing and hide what the others say.
    lines = b"\n".join(line for line in data.split(b"\n") if not line.isascii())
    found = from_bytes(lines, cp_isolation=_BY_OTHERS, threshold=0.5, enable_fallback=False)
    doubts = {
        match.encoding: match.chaos + _doubt(lines.decode(match.encoding), match.encoding)
        for match in found
        if match.encoding in _BY_OTHERS
    }
    western = doubts.get(WINDOWS)
    if not doubts:  # as of a few characters
        doubts = {
            name: 1 + _doubt(lines.decode(name), name)
            for name in _BY_OTHERS
            if name != WINDOWS and _is_valid(lines, name)
        }
        western = 0.0 if _is_valid(lines, WINDOWS) else None
    doubts |= _doubts_by_letters(lines, western)
    return sorted(doubts, key=lambda name: (doubts[name], GUESSED.index(name))) or [
        WINDOWS if _is_valid(lines, WINDOWS) else LATIN_1
    ]


def _doubts_by_letters(data: bytes, western: float | None) -> dict[str, float]:
    """Return encoding → doubt by letters. western: other doubt in WINDOWS; None: it is not in it"""
    foreign = {
        name: foreign_share(data.decode(name), name)
        for name in (*_BY_LETTERS, WINDOWS)
        if _is_valid(data, name)
    }
    doubts = {name: foreign[name] for name in _BY_LETTERS if foreign.get(name, 1.0) < _MAX_FOREIGN}
    if western is not None:
        # What is doubtful about a Latin text is so in its other encodings too.
        doubts |= {name: doubts[name] + min(western, 0.05) for name in LATIN & {*doubts}}
        # Of those that have its letters, Windows' is the usual one.
        equal = [doubts[name] for name in LATIN & {*doubts} if foreign[name] >= foreign[WINDOWS]]
        doubts[WINDOWS] = min([western + foreign[WINDOWS] / 4, *equal])
    return doubts


def _doubt(text: str, encoding: str) -> float:
    """Return the share of characters outside ASCII that a text in this encoding hardly has: what
    charset-normalizer needs whole paragraphs to see."""
    rows, extends = _FREQUENT[encoding], encoding in _EXTEND_EUC
    doubtful = sum(len(match[0]) for match in _MIXED.finditer(text))
    codes = [character.encode(encoding) for character in text if not character.isascii()]
    rare = [c for c in codes if c[0] not in rows or (extends and c[1] <= _LAST_BEFORE_EUC)]
    doubt = (doubtful + len(rare)) / (len(codes) or 1)
    # Half of the frequent characters of Big5 have a second byte in ASCII. EUC encodings have none.
    is_euc = len(codes) > 2 and all(code[-1] > _LAST_BEFORE_EUC for code in codes)
    return doubt + is_euc * (encoding == "big5")


def _is_valid(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
