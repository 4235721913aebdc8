"""The table of languages is written from the code."""

from scripts import languages


def test_the_table_of_languages_is_written_from_the_code() -> None:
    """If this fails: make fix"""
    assert languages.PAGE.read_text() == languages.page(), "make fix writes it"
