"""NOTICE lists the licences of all that the wheel carries and brings."""

import pytest

from apps.code.languages import FILE_TYPES
from scripts import notice
from tests.house.sources import HOME

pytestmark = pytest.mark.door


def test_the_notice_is_that_of_the_locked_packages_and_the_used_grammars() -> None:
    """If this fails: make fix"""
    text = (HOME / "NOTICE").read_text()
    assert text == notice.notice()
    lines = text.splitlines()
    for grammar in {each.grammar for each in FILE_TYPES if each.grammar}:
        assert any(line.startswith(f"  {grammar}: ") and "https://" in line for line in lines)
    for name in ("chromadb", "quickjs-ng", "psycopg", "openai-codex-cli-bin", "pymongo"):
        assert any(line.startswith(f"  {name}: ") for line in lines)


def test_a_package_with_compiled_files_needs_a_word_on_what_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(notice.PARTS, "quickjs-ng")
    with pytest.raises(SystemExit, match="quickjs-ng has compiled files"):
        notice.notice()


def test_a_package_without_a_licence_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(notice.LICENCES, "quickjs-ng")
    with pytest.raises(SystemExit, match="quickjs-ng declares no licence"):
        notice.notice()
