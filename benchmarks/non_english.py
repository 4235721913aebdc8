"""Which lines come first for questions in other languages: `python -m benchmarks.non_english -h`.

    python -m benchmarks.non_english --checkouts DIR [--fetch BASE] [--data DIR] [--misses FILE]

A question is made from a comment in its language: every other longer word of it, in a sentence. The
lines of comments with all these words answer, if there are at most MAX_ANSWERS. In Japanese and
Chinese, runs of Han and Katakana are words, between particles. Comments of tests are left out.

The same questions are asked about an English repository, where no line answers. It is told if all
results are weak or there are none, and the hint says that the language is the reason.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import product
from benchmarks.answers import made
from benchmarks.encodings import CODE, SET
from benchmarks.retrieval import direct, metric, questions
from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, Target, folder_of

PER_REPOSITORY = 22
MAX_ANSWERS = 3
DEPTHS = (1, 5, 20)
# What is asked about: part of one repository of each language.
PARTS: Mapping[str, str] = {
    "Sa-Token": "sa-token-core",
    "voicevox_engine": "voicevox_engine",
    "gnuboard5": "lib",
    "OneScript": "src",
    "kivitendo-erp": "SL",
    "SPIP": "ecrire",
    "facturascripts": "Core",
}
_COMMENT = re.compile(r"\s*(?:#|//+|/\*+|\*+|--|\"\"\"|''')\s*(\S.*)")
_ACCENTED = r"[à-öø-ÿœß]"


class Language(NamedTuple):
    """What a question in a language is made of."""

    word: re.Pattern[str]
    is_in_it: re.Pattern[str]  # a comment in this language has it
    forms: Sequence[str]


_LETTERS = re.compile(r"[^\W\d_]{5,}")
_PARTICLES = "的了在是和与或等将把被为从对中以及也则都就不有可请所需此该其"
_HAN = re.compile(rf"(?:(?![{_PARTICLES}])[\u4e00-\u9fff]){{2,}}")
_CYRILLIC = re.compile(r"[а-яё]{5,}", re.IGNORECASE)
LANGUAGES: Mapping[str, Language] = {
    "zh": Language(_HAN, re.compile(r"[\u4e00-\u9fff]{4}"), ("{}在哪里实现？", "怎么处理{}？")),
    "ja": Language(
        re.compile(r"[\u4e00-\u9fff]{2,}|[\u30a1-\u30fe]{3,}"),
        re.compile(r"[\u3041-\u309f]"),
        ("{}はどこで行われますか？", "{}を処理するコードは？"),
    ),
    "ko": Language(
        re.compile(r"[\uac00-\ud7a3]{2,}"),
        re.compile(r"[\uac00-\ud7a3]{2}"),
        ("{} 코드는 어디에 있나요?", "{} 처리는 어떻게 하나요?"),
    ),
    "ru": Language(_CYRILLIC, _CYRILLIC, ("Где происходит {}?", "Как реализовано {}?")),
    "de": Language(
        _LETTERS, re.compile(_ACCENTED), ("Wo wird {} behandelt?", "Wie funktioniert {}?")
    ),
    "fr": Language(_LETTERS, re.compile(_ACCENTED), ("Où est géré {} ?", "Comment marche {} ?")),
    "es": Language(
        _LETTERS, re.compile(_ACCENTED), ("¿Dónde se gestiona {}?", "¿Cómo funciona {}?")
    ),
}
MIN_WORDS, MAX_WORDS = 5, 14
ENGLISH = Repository(
    "click", "en", "pallets/click", "2c8cd3ac958a7eb316d67f2d316c27086c4c0369", "", {}, ()
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--data", type=Path, help="a data folder to keep and use again")
    parser.add_argument("--misses", type=Path, help="write the questions not answered first")
    options = parser.parse_args()
    checkouts = options.checkouts.resolve()
    chosen = [
        replace(repository, index_root=PARTS[repository.name])
        for repository in questions.load(SET, list(PARTS))
    ]
    for repository in [*chosen, ENGLISH] if options.fetch else ():
        questions.fetch(repository, checkouts, options.fetch.rstrip("/"))
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        product.set_up((options.data or Path(temporary) / "data").resolve(), [checkouts])
        direct.ingest_all([*chosen, ENGLISH], checkouts, again=False)
        misses = _print_table(chosen, checkouts)
    if options.misses:
        options.misses.write_text("".join(f"{miss}\n" for miss in misses))


def _print_table(chosen: Sequence[Repository], checkouts: Path) -> list[str]:
    misses: list[str] = []
    ranks: list[int] = []
    told: list[bool] = []
    print("| language | questions | first | in five | in twenty | told by an English repository |")
    print("| --- | --- | --- | --- | --- | --- |")
    for repository in chosen:
        asked = _questions(repository, made.read(folder_of(repository, checkouts)))
        of_one = [_rank(repository, question) for question in asked]
        of_other = [_is_told(_search(ENGLISH, question)) for question in asked]
        print(f"| {repository.language} | {_shares(of_one)} | {_share(of_other)} |")
        ranks += of_one
        told += of_other
        for rank, is_told, question in zip(of_one, of_other, asked, strict=True):
            if rank != 1 or not is_told:
                places = " ".join(
                    f"{target.path}:{target.start_line}" for target in question.targets
                )
                misses.append(f"{repository.name}\t{rank}\t{is_told}\t{question.text}\t{places}")
    print(f"| all | {_shares(ranks)} | {_share(told)} |")
    return misses


def _shares(ranks: Sequence[int]) -> str:
    shares = [_share([0 < rank <= depth for rank in ranks]) for depth in DEPTHS]
    return " | ".join([str(len(ranks)), *shares])


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / max(1, len(values)):.3f}"


def _questions(repository: Repository, files: made.Lines) -> list[Question]:
    language = LANGUAGES[repository.language]
    words: dict[tuple[str, int], frozenset[str]] = {}  # of each comment
    asked: dict[tuple[str, ...], None] = {}
    for path, number, text in _comments(files):
        found = language.word.findall(text.lower())
        words[path, number] = frozenset(found)
        is_long = MIN_WORDS <= len(set(found)) <= MAX_WORDS
        if is_long and language.is_in_it.search(text) and "test" not in path.lower():
            asked[tuple(dict.fromkeys(found[::2]))] = None
    questions_: list[Question] = []
    for chosen in sorted(asked, key=lambda words: sha256(" ".join(words).encode()).digest()):
        places = [place for place, of_comment in words.items() if of_comment.issuperset(chosen)]
        if len(places) <= MAX_ANSWERS and len(questions_) < PER_REPOSITORY:
            form = language.forms[len(questions_) % len(language.forms)]
            targets = [Target(repository.path_of(path), line, line) for path, line in places]
            questions_.append(Question(form.format(" ".join(chosen)), "", tuple(targets)))
    return questions_


def _comments(files: made.Lines) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of each line that begins with a comment."""
    for path, lines in files.items():
        if path.rpartition(".")[2] in CODE:
            for number, line in enumerate(lines, 1):
                if match := _COMMENT.match(line):
                    yield path, number, match[1]


def _search(repository: Repository, question: Question) -> dict[str, Any]:
    from apps.tools.vector_search import VECTOR_SEARCH

    arguments = {"query": question.text, "repository": repository.name, "limit": max(DEPTHS)}
    return VECTOR_SEARCH.run(arguments)


def _rank(repository: Repository, question: Question) -> int:
    """The rank of the first row that answers, from 1; 0 if none does."""
    for rank, row in enumerate(_search(repository, question)["results"], 1):
        place = Place(repository.path_of(row["relPath"]), row["startLine"], row["endLine"])
        if any(metric.answers(place, target) for target in question.targets):
            return rank
    return 0


def _is_told(answer: dict[str, Any]) -> bool:
    is_weak = all(row.get("weak") for row in answer["results"])
    return is_weak and "in the language of the question" in answer.get("hint", "")


if __name__ == "__main__":
    main()
