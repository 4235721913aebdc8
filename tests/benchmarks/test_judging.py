"""The benchmark end to end: a small set, its folder ingested, and every query searched."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.retrieval import ablation, direct, questions, scores, tables
from benchmarks.retrieval.others import bm25, grep
from benchmarks.retrieval.questions import Question, Repository
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

FILES = {
    "src/parcel.py": "class Parcel:\n    def weigh(self, scale):\n        return scale.read()\n",
    "src/crane.py": "def lift_container(crane, container):\n    crane.hook(container)\n",
    "src/ledger.py": "def note(parcel):\n    return parcel.name\n",
    "README.md": "outside of what is searched: weigh a parcel\n",
}
ENTRY = {
    "name": "port",
    "language": "python",
    "repository": "harbour/port",
    "commit": "0" * 40,
    "index_root": "src",
    "queries": [
        {
            "query": "weigh a parcel",
            "category": "semantic",
            "relevant": [{"path": "src/parcel.py"}],
            "secondary": [],
        },
        {
            "query": "lift_container",
            "category": "symbol",
            "relevant": [{"path": "crane.py"}],
            "secondary": [{"path": "src/missing.py"}],
        },
    ],
}


@pytest.fixture
def repository(folder: Path) -> Repository:
    write_files(folder / "port", FILES)
    file = folder / "set.json"
    file.write_text(json.dumps({"repositories": [ENTRY]}))
    (repository,) = questions.load(file)
    return repository


@pytest.fixture
def ingested(
    folder: Path, repository: Repository, transactional_db: None, configure: Callable[..., None]
) -> Repository:
    configure(ingest_base=(folder,))
    direct.ingest_all([repository], folder, again=False)
    return repository


def test_search_is_scored_in_process(ingested: Repository) -> None:
    semantic, symbol = scores.judged(direct.system(), [ingested])
    assert (semantic.file, semantic.covered) == (1, True)
    # The second file of the question does not exist, and counts.
    assert symbol.file == pytest.approx(0.613, abs=0.001)
    assert not symbol.covered
    assert semantic.chars > len(FILES["src/parcel.py"])


def test_an_ingested_repository_is_not_ingested_again(ingested: Repository, folder: Path) -> None:
    direct.ingest_all([ingested], folder / "nowhere", again=False)
    with pytest.raises(SystemExit, match="not a folder"):
        direct.ingest_all([ingested], folder / "nowhere", again=True)


def test_each_signal_can_be_disabled_by_its_name(ingested: Repository) -> None:
    without = ablation.without_each([ingested])
    assert {"the vectors", "the words", "definition", "file_name", "test"} <= set(without)
    assert all(len(found) == len(ingested.questions) for found in without.values())
    whole = scores.judged(direct.system(), [ingested])
    assert len(tables.ablation(whole, without).splitlines()) == len(without) + 2


def test_weights_can_be_replaced_for_a_query(ingested: Repository) -> None:
    """Once a name like the question's counts against a file, the one that answers comes last."""
    semantic, _ = scores.judged(direct.system({"file_name": -1_000.0}), [ingested])
    assert semantic.file == pytest.approx(0.631, abs=0.001)


def test_plain_bm25_searches_the_same_chunks(ingested: Repository) -> None:
    semantic, symbol = scores.judged(bm25.system(), [ingested])
    assert (semantic.file, symbol.file) == (1, pytest.approx(0.613, abs=0.001))


def test_the_tables_have_every_system(ingested: Repository) -> None:
    ours = scores.judged(direct.system(), [ingested])
    nothing = scores.judged(lambda repository, question: [], [ingested])
    systems = {"codeinfo": ours, "nothing": nothing, "ripgrep by keyword": ours}
    assert "| nothing | .000 | .000 | .000 | .000 | .000 | – |" in tables.overall(systems)
    assert "| nothing | +0.807 |" in tables.differences("codeinfo", systems)
    assert "| python | .807 | .000 | .807 |" in tables.by("language", systems)
    # It found nothing, so it takes what the keyword search takes.
    assert "| nothing | 0% |" in tables.tokens(systems)
    assert "100.0%" in tables.tokens(systems).splitlines()[-2]


def test_scores_are_written_and_read_back(repository: Repository, folder: Path) -> None:
    results = scores.judged(lambda repository, question: [], [repository])
    scores.save(results, folder / "results.json")
    assert scores.saved(folder / "results.json") == results


def test_each_language_counts_once() -> None:
    def score(repository: str, language: str, value: float) -> scores.Score:
        return scores.Score(repository, language, "q", "symbol", value, value, 1, 1, True)

    found = [score("a", "go", 1), score("a", "go", 0), score("b", "go", 1), score("c", "c", 0)]
    assert scores.mean(found) == 0.5
    assert scores.mean_of_languages(found) == pytest.approx(((0.5 + 1) / 2 + 0) / 2)


def test_keywords_leave_out_stopwords() -> None:
    assert grep.keywords("how is the TLS_config of a Client parsed") == [
        "TLS_config",
        "Client",
        "parsed",
    ]


def test_a_path_below_the_index_root_is_one_of_the_repository() -> None:
    repository = Repository("a", "go", "o/a", "", "", {}, (Question("q", "symbol", ()),))
    assert repository.path_of("b/c.go") == "b/c.go"
