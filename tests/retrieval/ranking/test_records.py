"""Files without vectors rank after code, unless the query has their name."""

from apps.retrieval.ranking import Passage, Passages, RankingQuery, rank

CODE = [Passage("", f"src/c{n}.py", similarity=0.5 - n / 10, words=1.0) for n in range(3)]
RECORDS = Passage("", "db/structure.dump", words=1.5)


def order(text: str, *passages: Passage) -> list[str]:
    places = rank(RankingQuery.of(text), Passages.of(passages))
    return [passages[place].path for place in places]


def test_they_come_after_code_with_as_many_words() -> None:
    assert order("what moors a ship", RECORDS, *CODE)[-1] == RECORDS.path


def test_a_query_with_the_name_of_the_file_gets_it() -> None:
    assert order("ships of structure.dump", RECORDS, *CODE)[0] == RECORDS.path


def test_without_a_vector_of_the_query_words_decide() -> None:
    code = [passage._replace(similarity=None) for passage in CODE]
    assert order("what moors a ship", RECORDS, *code)[0] == RECORDS.path
