"""Where a name stands as an identifier: comments, strings and longer names do not count."""

import sys
from collections.abc import Iterator

import pytest

from apps.code.languages import language_of
from apps.index.parsing.finder import Finder, SourceText
from tests.index import unruly_parser

pytestmark = pytest.mark.door

# In each: `price` is declared on the first line and used on the second. The third has it in a
# comment and in a string, and as a part of other names, and is not found.
SOURCES = {
    "a.py": "def price(): pass\nx = price()\npriced = price_of + 'price'  # price\n",
    "a.js": "function price() {}\nprice();\nlet priced = price_of + 'price' // price\n",
    "a.ts": "function price(): void {}\nprice();\nlet priced = 'price' // price\n",
    "a.tsx": "const price = () => 1\nconst a = price()\nconst b = <p>price</p> // price\n",
    "A.java": 'class A { void price() {}\n{ price(); }\nString s = "price"; /* price */ }\n',
    "a.go": "func price() {}\nvar x = price()\nvar priced = `price` // price\n",
    "a.rs": 'fn price() {}\nconst X: u8 = price();\nconst PRICED: &str = "price"; // price\n',
    "a.rb": 'def price; end\nsend(:price)\npriced = "price" # price\n',
    "a.php": "<?php function price() {}\nprice();\n$priced = 'price'; // price\n",
    "a.c": 'int price(void);\nint x = price();\nchar *s = "price"; // price\n',
    "a.cpp": 'int shop::price() {}\nauto x = price();\nauto s = "price"; // price\n',
    "a.cs": 'class A { void price() {}\nint x = price();\nstring s = "price"; } // price\n',
    "a.swift": 'func price() {}\nlet x = price()\nlet s = "price" // price\n',
    "a.kt": 'fun price() {}\nval x = price()\nval s = "price" // price\n',
    "a.scala": 'object A { def price = 1\nval x = price\nval s = "price" } // price\n',
    "a.lua": 'function price() end\nlocal x = price()\nlocal s = "price" -- price\n',
    "a.sh": 'price() { :; }\nprice\necho "price" # price\n',
    "a.ex": 'def price(x), do: 1\nprice(2)\n"price" # price\n',
    "a.hs": 'price = 1\nx = price\ns = "price" -- price\n',
}


@pytest.fixture(scope="module")
def finder() -> Iterator[Finder]:
    opened = Finder()
    yield opened
    opened.close()


def text(path: str, source: str) -> SourceText:
    return SourceText(path, language_of(path).grammar, source.split("\n"))


@pytest.mark.door
@pytest.mark.parametrize("path", SOURCES)
def test_identifiers_are_distinguished_from_text(finder: Finder, path: str) -> None:
    (sighting,) = finder.find("price", [text(path, SOURCES[path])])
    assert sighting.parsed
    assert [(found.row, found.defines) for found in sighting.occurrences] == [(0, True), (1, False)]


def test_an_occurrence_knows_its_column_and_the_definition_around_it(finder: Finder) -> None:
    source = 'class Shop:\n    name = "é"; cost = 1\n    def sell(self):\n        é = 1; cost()\n'
    (sighting,) = finder.find("cost", [text("a.py", source)])
    assert [tuple(found) for found in sighting.occurrences] == [
        (1, 16, True, "Shop"),
        (3, 15, False, "Shop.sell"),
    ]


def test_interpolated_code_counts_and_the_string_around_it_does_not(finder: Finder) -> None:
    (sighting,) = finder.find("price", [text("a.py", 'x = f"price {price}"\n')])
    assert [found.column for found in sighting.occurrences] == [13]


def test_without_a_grammar_each_whole_word_counts(finder: Finder) -> None:
    (sighting,) = finder.find("shop", [text("a.sql", "SELECT shop -- shop\nworkshop shop_id\n")])
    assert not sighting.parsed
    assert [(found.row, found.column) for found in sighting.occurrences] == [(0, 7), (0, 15)]


def test_names_that_are_no_plain_words_are_found_whole(finder: Finder) -> None:
    source = "def valid?; end\nvalid? && valid\n"
    (sighting,) = finder.find("valid?", [text("a.rb", source)])
    assert [found.row for found in sighting.occurrences] == [0, 1]


@pytest.mark.door
def test_a_file_that_kills_its_parse_is_searched_for_the_word() -> None:
    finder = Finder(processes=1, command=unruly_parser.COMMAND)
    try:
        bad, good = finder.find(
            "price", [text("a.py", "crash\nprice  # price\n"), text("b.py", "price  # price\n")]
        )
    finally:
        finder.close()
    assert (bad.parsed, len(bad.occurrences)) == (False, 2)
    assert (good.parsed, len(good.occurrences)) == (True, 1)


@pytest.mark.door
def test_files_that_are_not_parsed_in_time_are_searched_for_the_word() -> None:
    silent = (sys.executable, "-c", "import time; time.sleep(600)")
    finder = Finder(processes=1, command=silent)
    try:
        files = [text(f"{n}.py", "price  # price\n") for n in range(20)]
        found = finder.find("price", files, seconds=0.3)
        assert [(each.parsed, len(each.occurrences)) for each in found] == [(False, 2)] * 20
        assert finder.facts(files, seconds=0.3) == [None] * 20
    finally:
        finder.close()
