"""How unlikely a text is in an encoding of one byte a character, by the letters and the spelling of
the languages that are written in it."""

import re
from collections.abc import Mapping, Sequence

# Characters that are looked at.
_MAX_CHARACTERS = 20_000
_WESTERN = (
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüß",
    "áéíñóúü",  # Spanish
    "ãáâàçéêíõóôúü",  # Portuguese
    "àèéìíîòóùú",  # Italian
    "åäöæøéšž",  # Swedish, Danish, Norwegian, Finnish
    "áðéíóúýþæö",  # Icelandic
    "àçéèíïóòúü",  # Catalan
    "äëéèïöüó",  # Dutch
)
_CENTRAL = (
    "ąćęłńóśźż",  # Polish
    "áčďéěíňóřšťúůýž",  # Czech
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "áéíóöőúüű",  # Hungarian
    "čćđšž",  # Croatian and Slovene
    "ăâîşţ",  # Romanian
    "äöüß",
)
_GREEK = ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ",)
_MARKS = "\u0e31\u0e34-\u0e39\u0e47-\u0e4c"  # above and below consonants in Thai
# Encoding → the letters beyond ASCII of each language that is written in it, in lower case.
ALPHABETS: Mapping[str, Sequence[str]] = {
    "cp1252": _WESTERN,
    "iso8859_15": _WESTERN,
    "mac_roman": _WESTERN,
    "cp866": ("абвгдеёжзийклмнопрстуфхцчшщъыьэюя",),
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1254": ("çğıöşüâîû" + "İ".lower(),),  # Turkish
    "cp1253": _GREEK,
    "iso8859_7": _GREEK,
    "cp1255": ("אבגדהוזחטיךכלםמןנסעףפץצקרשת",),
    "cp1256": (
        "ءآأؤإئابةتثجحخدذرزسشصضطظعغـفقكلمنهوىي\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652،؛؟",
    ),
    "cp874": ("".join(map(chr, [*range(0x0E01, 0x0E3B), *range(0x0E40, 0x0E5A)])),),
}
LATIN = frozenset({"iso8859_15", "cp1250", "iso8859_2", "cp1254"})
# Encoding → what its spelling does not have, such as final letters within words.
_MISSPELT: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("cp1253", "iso8859_7"), re.compile(r"ς(?=[α-ώ])|[α-ώ](?=[Α-Ω])")),
    "cp1255": re.compile(r"[ךםןףץ](?=[א-ת])"),
    "cp1256": re.compile(r"[ةى](?=[ء-ي])|(?<![ء-ي])[ءةىؤئ]|ء(?=[ب-نهوى])"),
    # Portuguese has `ões`, Hungarian `ő` anywhere.
    **dict.fromkeys(("cp1252", "iso8859_15"), re.compile(r"õ(?!e)(?![^\n]{0,200}ä)")),
    # A vowel or a tone without a consonant before it, a vowel before none, Kana, no vowels.
    "cp874": re.compile(
        r"(?<![\u0e01-\u0e3a\u0e45-\u0e4e])[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e]"
        r"|[\u0e40-\u0e44](?![\u0e01-\u0e2e])|(?:[\u0e04\u0e05].){3}|[\u0e01-\u0e2e]{6}"
    ),
}
# What a few words hardly lack. Without it, they may as well be Russian, Chinese or German.
_TYPICAL: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("cp1253", "iso8859_7"), re.compile("[άέήίόύώ]")),
    "cp1255": re.compile(r"[א-ת][םןךףץת](?![א-ת])"),
    "cp1256": re.compile(r"(?<![ء-ي])[وبلف]?ا[لن]|[ةىن](?![ء-ي])"),
    "cp874": re.compile(rf"[\u0e01-\u0e2e][{_MARKS}](?:.{{0,9}}[{_MARKS}]){{2}}"),
    "cp1254": re.compile("[ğışĞİŞ]"),
    "iso8859_15": re.compile("[€œŒšŠžŽŸ]"),
    "mac_roman": re.compile("[a-z][ß-öø-ÿ]|[ß-öø-ÿ][a-z]{2}"),
    "cp866": re.compile("[а-яё]{3}"),
}
_UNTYPICAL = 0.3
_PUNCTUATION = frozenset("“”„‘’‚«»‹›–—…•·°§©®™€£¥×±²³½¼¡¿\xa0ªº´")
# A sign between letters, a letter of another script beside a Latin one, many accents, a capital
# after a small letter: what the letters of other encodings look like.
_WITHIN = re.compile(
    r"(?<=[^\W\d_])[“”„‘‚«»‹›–—…•°§©®™€£¥×±²³½¼¡¿\xa0ªº´](?=[^\W\d_])"
    r"|[A-Za-z](?=[\u0370-\u0e7f])|[\u0370-\u0e7f](?=[A-Za-z])"
    r"|[©®ªº²³¹¼½¾´](?=[^\W\d_])|[\u00c0-\u024f]{3,9}"
    r"|[a-z\u00df-\u00f6\u00f8-\u00ff][\u00c0-\u00d6\u00d8-\u00de]"
)


def foreign_share(text: str, encoding: str) -> float:
    """The share of the characters beyond ASCII that no language of an encoding in ALPHABETS has, or
    has not there; more if the text lacks what is typical. Its beginning is looked at."""
    text = text[:_MAX_CHARACTERS]
    characters = [character for character in text if not character.isascii()]
    letters = [character.lower() for character in characters if character not in _PUNCTUATION]
    foreign = min(
        sum(letter not in alphabet for letter in letters) for alphabet in ALPHABETS[encoding]
    )
    wrong = foreign + len(_WITHIN.findall(text))
    if encoding in _MISSPELT:
        wrong += 2 * len(_MISSPELT[encoding].findall(text))
    is_typical = encoding not in _TYPICAL or _TYPICAL[encoding].search(text)
    return wrong / max(1, len(characters)) + (0.0 if is_typical else _UNTYPICAL)
