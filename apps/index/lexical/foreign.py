"""Whether a question is in another language than English."""

import re
from unicodedata import normalize

# Words of questions in English that other languages rarely have.
_ENGLISH = frozenset(
    "the of how is are does what where which when who why this that with from and for to by not "  # noqa: SIM905
    "can".split()
)
# Frequent words of German, French, Spanish, Italian and Portuguese that are rare in English.
_FREQUENT = frozenset(
    "und nicht wird wie wo das dem ist ein eine einen mit auf wenn werden warum für über "  # noqa: SIM905
    "funktioniert les dans pour sur une est quand qui que où fonctionne marche como cómo dónde qué "
    "para por con una cuando se funciona dove sono il che onde uma pelo".split()
)
# Those that names have too: "von Kármán", "de la Vallée", "el niño".
_OF_NAMES = frozenset("der den von du des le la el los las del della di".split())  # noqa: SIM905
_WEIGHT, _LEAST = 2, 3  # of a frequent word; of the words of a foreign question
# Many accents are foreign, a few are of names and loanwords ("São José", "naïve").
_FEW, _MANY = 2, 1 / 3
_WORD = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
# Runs of letters that are not Latin. One letter beside Latin ones is a sign: "Δt", "λ".
_OTHER = re.compile(
    r"(?:(?![\u1e00-\u1eff])[^\W\d_\u0000-\u036f]){2,}|[\u3400-\u9fff\uac00-\ud7af]"
)
_LETTERS_OF_A_WORD = 2  # in Han and kana; others have more, and are counted the same
_CODE = re.compile(r"`[^`]*`")
# Words of a sentence, rather than identifiers.
_PLAIN = re.compile(r"(?<![\w.`])[A-Z]?[a-z]+(?![\w.(`])")


def is_foreign(question: str) -> bool:
    """Whether a question is hardly English: most of it is in another script, or it has frequent
    words or many accents of another language, and no word that questions in English have. Names and
    loanwords with accents, signs, and abbreviations (DER, EST) are English too."""
    text = _CODE.sub(" ", normalize("NFC", question))
    words = {word if word.isupper() else word.lower() for word in _WORD.findall(text)}
    if not words.isdisjoint(_ENGLISH):
        return False
    others = sum(len(run) / _LETTERS_OF_A_WORD for run in _OTHER.findall(text))
    if others:
        return others >= len(_PLAIN.findall(text))
    accented = sum(_ACCENTED.search(word) is not None for word in words)
    if accented < max(_FEW + 1, len(words) * _MANY):
        accented = accented if accented == len(words) else min(accented, _FEW)
    evidence = _WEIGHT * len(words & _FREQUENT) + len(words & _OF_NAMES) + accented
    return evidence >= _LEAST or 0 < accented == len(words)
