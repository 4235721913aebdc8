"""Licences that allow training: permissive ones, which require no more than a notice.

Packages write their licences in many forms, so names are normalised and looked up. A name that is
not in the table is not permissive. Of alternatives (`MIT OR GPL-2.0`) one must be permissive, of
conjunctions all.
"""

import re
from collections.abc import Iterator
from email.message import Message
from fnmatch import fnmatchcase
from typing import Any

# Patterns of a whole name, in lower case, with spaces and underscores as hyphens.
PERMISSIVE = re.compile(
    r"""
    mit | mit-0 | mit-license | the-mit-license | (the-)?mit-license-mit | mit-style | mit-x
    | mit-cmu
    | expat(-(google|isec|m4|curl|license))? | x11(-.*)?
    | (the-)?(apache|asl)((-software)?-licen[sc]e)?(,?-(version-|v)?2(\.0)?)?
    | (the-)?(new-|modified-|simplified-|[023]-clause-|[23]c-)?bsd(-style)?(-licen[sc]e)?
    | (the-)?bsd-?[0123]-?clause(-license|-.*)? | google-bsd3 | bsd-?[023] | freebsd
    | bsd-like | 0bsd
    | go | isc | isc-license(-iscl)? | zlib | zlib/libpng | libpng | zlib-acknowledgement
    | python-software-foundation-license | psf(-2\.0)?(-license)? | python-2\.0(\.1)? | psfl
    | (the-)?unlicense(-unlicense)? | cc0(-1\.0)?(-universal)? | public-domain | publicdomain
    | bsl-1\.0 | boost(-1\.0)? | boost-software-license-1\.0-bsl-1\.0 | boost-software-license
    | postgresql(-license)? | hpnd | historical-permission-notice-and-disclaimer-hpnd
    | zpl-2\.1 | zope-public-license | ncsa | w3c | wtfpl | blueoak-1\.0\.0 | allpermissions
    | permissive | llvm-exception | curl | unicode(-3\.0|-dfs-2016|-tou)? | openssl | icu
    """,
    re.VERBOSE,
)
UNSAID = frozenset({"", "unknown", "none", "other", "osi-approved", "freely-distributable"})

_TOKEN = re.compile(r"\(|\)|[^\s()]+")
# Trove classifiers repeat a name in brackets; as a part of the name it is no bracket.
_REPEATED = re.compile(r"\s\((iscl|bsl-1\.0|hpnd|mit|unlicense)\)", re.IGNORECASE)


def is_permissive(expression: str) -> bool:
    """Return True if an expression such as `MIT AND (Apache-2.0 OR GPL-2.0)` allows training.

    A comma means "and" and binds loosest, as in Debian's copyright files.
    """
    expression = expression.replace("/MIT", " OR MIT").replace("MIT/", "MIT OR ")
    clauses = re.split(r",|;", expression.replace("License, Version", "License Version"))
    clauses = [re.sub(r"^\s*(and|or)\b", "", clause, flags=re.IGNORECASE) for clause in clauses]
    return all(_Reader(clause).permissive() for clause in clauses)


def _known(name: str) -> bool:
    name = re.sub(r"[\s_]+", "-", name.strip().lower())
    return PERMISSIVE.fullmatch(name) is not None


class _Reader:
    """A parser of one expression: names, AND, OR, WITH and brackets. AND binds tighter than OR."""

    def __init__(self, text: str) -> None:
        text = _REPEATED.sub(r"-\1", text).replace("and/or", "or")
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def permissive(self) -> bool:
        found = self._either()
        return found and self._at == len(self._tokens)

    def _next(self) -> str:
        return self._tokens[self._at].lower() if self._at < len(self._tokens) else ""

    def _either(self) -> bool:
        found = self._both()
        while self._next() in ("or", "|"):
            self._at += 1
            other = self._both()
            found = found or other
        return found

    def _both(self) -> bool:
        found = self._one()
        while self._next() in ("and", "&"):
            self._at += 1
            other = self._one()
            found = found and other
        return found

    def _one(self) -> bool:
        if self._next() == "(":
            self._at += 1
            found = self._either()
            self._at += 1
            return found
        words = []
        while self._next() not in ("", "(", ")", "and", "or", "with", "|", "&"):
            words.append(self._tokens[self._at])
            self._at += 1
        if self._next() == "with":  # an exception only ever allows more
            self._at += 2
        return _known(" ".join(words))


def of_wheel(metadata: Message) -> str:
    """The licence of a Python package: the expression, else the classifiers, else the text."""
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [
        classifier.split("::")[-1].strip()
        for classifier in metadata.get_all("Classifier", [])
        if classifier.startswith("License")
    ]
    stated_names = [name for name in classifiers if _plain(name) not in UNSAID]
    text = str(metadata.get("License") or "").strip()
    short = text if len(text) <= 80 and "\n" not in text else ""
    return " AND ".join(stated_names) or ("" if _plain(short) in UNSAID else short)


def of_npm(description: dict[str, Any]) -> str:
    """The licence of a package.json. Old ones have a list of alternatives."""
    stated = description.get("license") or description.get("licenses") or ""
    several = stated if isinstance(stated, list) else [stated]
    names = [each.get("type", "") if isinstance(each, dict) else str(each) for each in several]
    return " OR ".join(name for name in names if name)


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


class DebianCopyright:
    """The licences in the machine-readable copyright file (DEP-5) of a Debian package."""

    def __init__(self, text: str) -> None:
        self._rules = [
            (pattern, licence)
            for patterns, licence in _file_paragraphs(text)
            for pattern in patterns
            if not pattern.startswith("debian/")
        ]

    def of(self, path: str) -> str:
        """The licence of one file by the last paragraph that matches it; "" if none does."""
        found = ""
        for pattern, licence in self._rules:
            if fnmatchcase(path, pattern):
                found = licence
        return found

    def whole(self) -> str:
        """All licences of the package, without those of the packaging."""
        licences = dict.fromkeys(licence for _, licence in self._rules)
        return " AND ".join(f"({licence})" if " " in licence else licence for licence in licences)


def _file_paragraphs(text: str) -> Iterator[tuple[list[str], str]]:
    """The file patterns and the short name of the licence in each `Files:` paragraph."""
    for paragraph in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files:\s*((?:.+\n?)(?:[ \t].+\n?)*)", paragraph, re.MULTILINE)
        licence = re.search(r"^License:[ \t]*(\S.*)", paragraph, re.MULTILINE)
        if files and licence:
            yield re.split(r"[\s,]+", files.group(1).strip()), licence.group(1).strip()
