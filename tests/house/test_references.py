"""Every reference in code, tests and documents leads somewhere.

A section sign cites docs/contract.md; a letter and a number after `decisions.md` cite a row of
docs/decisions.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import HOME, name_of, tracked

pytestmark = pytest.mark.door

READABLE = {".py", ".md", ".html", ".js", ".mjs", ".css", ".toml", ".yml", ".sh", ".txt"}
SELF = Path(__file__)

SECTION = re.compile(r"§ ?(\d+(?:\.\d+)*)")
DECISION = re.compile(r"\b[Dd]ecisions?(?:\.md)?,? ([A-Z]?\d+)\b")
DOCUMENT = re.compile(r"\bdocs/[\w/-]+\.md\b")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")


def texts() -> Iterator[tuple[Path, str]]:
    for file in tracked():
        if file.suffix in READABLE and file != SELF and not name_of(file).startswith("require"):
            yield file, file.read_text(errors="replace")


def contract_sections() -> dict[str, str]:
    """Section number → its text, up to the next heading."""
    parts = re.split(
        r"^#{2,3} (\d+(?:\.\d+)?) ", (HOME / "docs/contract.md").read_text(), flags=re.M
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def decision_rows() -> list[str]:
    return re.findall(r"^\| ([A-Z]\d+) \|", (HOME / "docs/decisions.md").read_text(), re.M)


def resolves(number: str, sections: dict[str, str]) -> bool:
    """True if a section has this number, or a numbered item: 4.4.9 is item 9 of section 4.4."""
    if number in sections:
        return True
    section, _, item = number.rpartition(".")
    return re.search(rf"^{item}\. ", sections.get(section, ""), re.M) is not None


def headings(file: Path) -> set[str]:
    """The anchors of a document, as GitHub makes them from its headings."""
    titles = re.findall(r"^#+ (.+)$", file.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_section_of_the_contract_that_is_cited_exists() -> None:
    sections = contract_sections()
    lost = [
        f"{name_of(file)}: §{number}"
        for file, text in texts()
        for number in SECTION.findall(text)
        if not resolves(number, sections)
    ]
    assert lost == []


def test_every_decision_that_is_cited_exists() -> None:
    rows = decision_rows()
    lost = [
        f"{name_of(file)}: decision {number}"
        for file, text in texts()
        for number in DECISION.findall(text)
        if number not in rows
    ]
    assert lost == []
    assert len(rows) == len(set(rows))


def test_every_document_that_is_named_exists() -> None:
    lost = [
        f"{name_of(file)}: {name}"
        for file, text in texts()
        for name in DOCUMENT.findall(text)
        if "tests" not in file.parts and not (HOME / name).is_file()
    ]
    assert lost == []


def test_no_document_outside_the_repository_is_cited() -> None:
    assert [name_of(file) for file, text in texts() if "contracts.md" in text] == []


def test_every_anchor_of_a_link_is_a_heading() -> None:
    lost = []
    for file, text in texts():
        if file.suffix != ".md":
            continue
        for target, anchor in ANCHOR.findall(text):
            document = file.parent / target if target else file
            if anchor not in headings(document):
                lost.append(f"{name_of(file)} → {target}#{anchor}")
    assert lost == []


def test_a_reference_that_leads_nowhere_is_found() -> None:
    sections = {"4.4": "\n1. first\n2. second\n"}
    assert resolves("4.4", sections)
    assert resolves("4.4.2", sections)
    assert not resolves("4.4.3", sections)
    assert not resolves("4.5", sections)
    assert DECISION.findall("see decision 25, decisions.md I12 and decisions 4") == [
        "25",
        "I12",
        "4",
    ]
