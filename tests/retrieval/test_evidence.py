"""What a query asks for as it is comes first: definitions by name, texts verbatim, whole names."""

from pathlib import Path

import pytest

from tests.retrieval.conftest import Ask
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

HARBOUR = '''"""Ships and their berths."""


class Berth:
    """A place of a quay.

    It is free until a ship takes it.
    """

    def __init__(self, metres: int) -> None:
        self.metres = metres


def moor(ship: str, berth: Berth) -> str:
    """Tie a ship to a berth."""
    if not berth.metres:
        raise ValueError(f"No berth of the quay is long enough for {ship}: "
                         f"all are shorter than {berth.metres} metres")
    return ship
'''
FILES = {
    "harbour.py": HARBOUR,
    # These say the words of the questions more often.
    "berths.py": "# Berth, berths: what a berth is responsible for, and where berths are defined\n"
    "def berths_of(quay):\n    return [berth for berth in quay.berths if berth.is_free]\n",
    "quay.py": "# a quay is long: all metres of the quay, all ships, long enough or shorter\n"
    "def metres_of(quay):\n    return sum(berth.metres for berth in quay)\n",
    "crane.py": "import hoists\n\n\ndef lift(load):\n    hoists.Winch.pull_slowly(load)\n",
    "winch.py": "def pull(load, slowly):\n    # pull slowly, slowly pull\n    return load\n",
    "Winch.java": "class Winch {\n  int turns;\n\n  Winch(int turns) {\n"
    "    // a winch, a new winch, the winch of a ship\n    this.turns = turns;\n  }\n}\n",
    "tests/test_harbour.py": "from harbour import Berth, moor\n\n\ndef test_moor():\n"
    '    assert moor("Elba", Berth(3)) == "Elba"  # a berth of a quay\n',
}


@pytest.fixture
def harbour(folder: Path) -> None:
    ingest(write_files(folder, FILES), "harbour")


def first(ask: Ask, query: str) -> tuple[str, str]:
    found = ask(query=query)["results"][0]
    return found["relPath"], found["chunk"]


@pytest.mark.parametrize(
    "query",
    [
        "What is Berth responsible for?",
        "class Berth",
        "where is `Berth` defined",
        "explain the class Berth",
        "Berth",
    ],
)
def test_a_named_definition_comes_first(harbour: None, ask: Ask, query: str) -> None:
    path, chunk = first(ask, query)
    assert path == "harbour.py"
    assert 'class Berth:\n    """A place of a quay.' in chunk


def test_a_class_comes_before_its_constructor(harbour: None, ask: Ask) -> None:
    path, chunk = first(ask, "What does Winch do?")
    assert path == "Winch.java"
    assert "class Winch {" in chunk


def test_a_plain_word_that_is_the_only_one_is_a_name(harbour: None, ask: Ask) -> None:
    assert "def moor(" in first(ask, "what does moor do?")[1]


def test_a_question_about_more_than_names_is_ranked_by_its_words(harbour: None, ask: Ask) -> None:
    path, _ = first(ask, "how many metres of all ships are shorter than a Berth of the quay")
    assert path == "quay.py"


@pytest.mark.parametrize(
    "query",
    [
        "No berth of the quay is long enough for Elba: all are shorter than 30 metres",
        "ValueError: No berth of the quay is long enough for Queen Mary",
        '"all are shorter than 300 metres"',
    ],
)
def test_a_message_with_its_values_finds_its_literal(harbour: None, ask: Ask, query: str) -> None:
    path, chunk = first(ask, query)
    assert path == "harbour.py"
    assert "raise ValueError" in chunk


def test_a_literal_may_lack_one_value_that_has_no_mark(folder: Path, ask: Ask) -> None:
    files = {
        "crane.py": "def check(crane):\n    if not crane.hook:\n"
        '        raise ValueError(f"Crane {crane.name} has no lifting hook.")\n',
        "hook.py": "# Crane hook: a crane has a lifting hook, no crane lifts without a hook\n"
        "def crane_lifting_hook(crane):\n    return crane.hook\n",
    }
    ingest(write_files(folder, files), "cranes")
    assert first(ask, "Crane Elba has no lifting hook.")[0] == "crane.py"
    # Words that are missing in two places are no single value.
    assert first(ask, "Crane Elba has no lifting platform hook")[0] == "hook.py"


@pytest.mark.parametrize("query", ["pull_slowly", "where is pull_slowly used?"])
def test_a_name_that_nothing_defines_is_found_whole(harbour: None, ask: Ask, query: str) -> None:
    path, chunk = first(ask, query)
    assert path == "crane.py"
    assert "pull_slowly" in chunk


def test_evidence_passes_a_filter_as_other_passages(harbour: None, ask: Ask) -> None:
    found = ask(query="class Berth", path="tests/")["results"]
    assert {row["relPath"] for row in found} == {"tests/test_harbour.py"}


@pytest.fixture
def stripes(folder: Path) -> None:
    files = {
        "text.py": "def strip(line):\n    return line.strip()\n\n\ndef handle(event):\n"
        "    return event\n",
        "paint.py": "def cache_colour(colour):\n    # caching the colours of stripes_of\n"
        "    return colour\n",
    }
    ingest(write_files(folder, files), "text")


def missing(ask: Ask, query: str) -> list[str]:
    words: list[str] = ask(query=query).get("missingWords", [])
    return words


def test_missing_words_are_compared_as_wholes(folder: Path, ask: Ask) -> None:
    ingest(write_files(folder, {"text.py": "def strip(line):\n    return line.strip()\n"}), "text")
    assert missing(ask, "Where is the Stripe client configured?") == [
        "Stripe", "client", "configured",
    ]  # fmt: skip
    assert missing(ask, "where is text stripped") == []


def test_forms_and_parts_of_names_are_no_missing_words(stripes: None, ask: Ask) -> None:
    assert missing(ask, "Stripe caching handled: cached, handles, strips") == []


def test_if_all_rare_words_are_missing_all_rows_are_weak(folder: Path, ask: Ask) -> None:
    files = {f"event_{n}.py": f"def event_{n}(event):\n    return event\n" for n in range(30)}
    ingest(write_files(folder, files), "events")
    results = ask(query="How is a Kafka event returned?")["results"]
    assert results and all(row["weak"] for row in results)
    results = ask(query="event_7 in Kafka")["results"]
    assert results and not any("weak" in row for row in results)
