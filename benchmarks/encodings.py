"""Of how many files in old encodings the text is right: `python -m benchmarks.encodings --help`.

    python -m benchmarks.encodings --checkouts DIR [--fetch BASE] [--misses FILE]

Files with comments that are not English, of the repositories in `non_english.json`, are written
anew in the encodings of their language: as many of each encoding, in the order of a hash. A file
is right if it is text for the product, and the encoding that the product finds gives the text back.
It is looked at alone, and among the files of its repository in the same encoding. All files are
also looked at in UTF-8. CP949 stands for EUC-KR, which lacks syllables that it has.

No such repository is in the languages of TRANSLATED. Their files are made: lines of Django's code
with LINES comments, which are translations of Django's messages.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import argparse
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import django

from benchmarks import product
from benchmarks.retrieval import questions
from benchmarks.retrieval.questions import folder_of

SET = Path(__file__).with_name("non_english.json")
FILES = 100  # of each encoding
READ_AT_ONCE = 64  # as an ingest does
MAX_BYTES = 400_000
# Encoding → languages that were written in it.
ENCODINGS: Mapping[str, Sequence[str]] = {
    "shift_jis": ["ja"],
    "euc_jp": ["ja"],
    "gbk": ["zh"],
    "big5": ["zh-Hant"],
    "cp949": ["ko"],
    "cp1251": ["ru"],
    "cp1252": ["de", "fr", "es"],
    "latin-1": ["de", "fr", "es"],
    "koi8-r": ["ru"],
    "gb18030": ["zh"],
    "iso8859-15": ["de", "fr", "es"],
    "utf-32-le": ["de", "fr", "es", "ru", "ja", "ko", "zh", "zh-Hant"],
    "utf-32-be": ["de", "fr", "es", "ru", "ja", "ko", "zh", "zh-Hant"],
    "cp1250": ["pl", "cs", "hu", "sk"],
    "iso8859-2": ["pl", "cs", "hu", "sk"],
    "cp1253": ["el"],
    "cp1254": ["tr"],
    "cp1255": ["he"],
    "cp1256": ["ar"],
    "tis-620": ["th"],
    "utf-16-le": ["de", "fr", "es", "ru", "ja", "ko", "zh", "zh-Hant"],
    "mac-roman": ["de", "fr", "es"],
    "cp866": ["ru"],
    "utf-16-be": ["de", "fr", "es", "ru", "ja", "ko", "zh", "zh-Hant"],
}
TRANSLATED = ("pl", "cs", "hu", "sk", "el", "tr", "he", "ar", "th")
LINES = 3
CODE = frozenset(
    "py java js ts vue php c h cc cpp hpp cs swift rb go rs pl pm sql sh kt mm m os bsl".split()  # noqa: SIM905
)
# A letter beyond ASCII in a comment.
COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*|\*|--|\"\"\"|''')[^\n]*[^\W\x00-\x7f]", re.MULTILINE)


class File(NamedTuple):
    """A file of a repository as UTF-8."""

    repository: str
    path: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkouts", type=Path, required=True, help="holds <name>/ of each")
    parser.add_argument("--fetch", metavar="BASE", help="clone BASE/<owner>/<name> by commit")
    parser.add_argument("--misses", type=Path, help="write the files that are wrong")
    options = parser.parse_args()
    of_language: dict[str, list[File]] = defaultdict(list)
    for repository in questions.load(SET):
        if options.fetch:
            questions.fetch(repository, options.checkouts, options.fetch.rstrip("/"))
        folder = folder_of(repository, options.checkouts)
        of_language[repository.language] += _commented(repository.name, folder)
    for language in TRANSLATED:
        of_language[language] += _translated(language)
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        product.set_up(Path(temporary), [options.checkouts])
        misses = _print_table(of_language)
    if options.misses:
        options.misses.write_text("".join(f"{miss}\n" for miss in misses))


def _commented(repository: str, folder: Path) -> Iterator[File]:
    for file in sorted(folder.rglob("*")):
        if file.suffix[1:] not in CODE or not file.is_file() or file.stat().st_size > MAX_BYTES:
            continue
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if COMMENT.search(text) and not text.startswith("\ufeff"):
            yield File(repository, str(file.relative_to(folder)), text)


def _translated(language: str) -> Iterator[File]:
    django_folder = Path(django.__file__).parent
    code = (django_folder / "db/models/query.py").read_text().splitlines()
    messages = [
        match[1]
        for file in sorted(django_folder.rglob(f"locale/{language}/LC_MESSAGES/django.po"))
        for match in re.finditer(r'^msgstr "([^"%\\]{12,})"$', file.read_text(), re.MULTILINE)
        if sum(not character.isascii() for character in match[1]) >= LINES
    ]
    for number in range(FILES):
        chosen = messages[number * LINES % len(messages) :][:LINES]
        lines = code[number * 20 : number * 20 + 40]
        for at, message in enumerate(chosen):
            lines.insert(9 * at + number % 9, f"    # {message}")
        yield File(f"django-{language}", f"{language}_{number}.py", "\n".join(lines))


def _print_table(of_language: Mapping[str, Sequence[File]]) -> list[str]:
    misses: list[str] = []
    total: Counter[str] = Counter()
    print("| encoding | files | repositories | right alone | right in their repository |")
    print("| --- | --- | --- | --- | --- |")
    for encoding, languages in ENCODINGS.items():
        chosen = _chosen(encoding, [file for name in languages for file in of_language[name]])
        contents = {file: file.text.encode(encoding) for file in chosen}
        alone = [file for file in chosen if not _is_right({file: contents[file]})[file]]
        right = _is_right(contents)
        together = [file for file in chosen if not right[file]]
        misses += [f"{encoding}\talone\t{file.repository}/{file.path}" for file in alone]
        misses += [f"{encoding}\tin repository\t{file.repository}/{file.path}" for file in together]
        shares = [f"{1 - len(wrong) / len(chosen):.3f}" for wrong in (alone, together)]
        repositories = len({file.repository for file in chosen})
        print(f"| {encoding} | {len(chosen)} | {repositories} | {' | '.join(shares)} |")
        total.update(files=len(chosen), alone=len(alone), together=len(together))
    shares = [f"{1 - total[key] / total['files']:.3f}" for key in ("alone", "together")]
    print(f"| all | {total['files']} | | {' | '.join(shares)} |")
    every = [file for files in of_language.values() for file in files]
    changed = _encodings({file: file.text.encode() for file in every})
    print(f"\nUTF-8: {len(every):,} files, {sum(map(bool, changed.values()))} changed")
    return misses


def _chosen(encoding: str, files: Sequence[File]) -> list[File]:
    """As many files that the encoding can write as each has, at random but always the same."""
    ordered = sorted(files, key=lambda file: sha256(f"{encoding} {file.path}".encode()).digest())
    return [file for file in ordered if _can_write(encoding, file.text)][:FILES]


def _can_write(encoding: str, text: str) -> bool:
    try:
        return text.encode(encoding).decode(encoding) == text
    except UnicodeError:
        return False


def _is_right(contents: Mapping[File, bytes]) -> dict[File, bool]:
    from apps.ingest.discovery.eligibility import BINARY, SCAN_BYTES, Rules

    rules, found = Rules(MAX_BYTES), _encodings(contents)
    return {
        file: data.decode(found[file] or "utf-8", "replace") == file.text
        and rules.refuse_content(file.path, data[:SCAN_BYTES]) != BINARY
        for file, data in contents.items()
    }


def _encodings(contents: Mapping[File, bytes]) -> dict[File, str]:
    """The encodings that an ingest of each repository finds; "" is UTF-8."""
    from apps.code.encodings import EncodingChoice

    of_repository: dict[str, dict[str, File]] = defaultdict(dict)
    for file in contents:
        of_repository[file.repository][file.path] = file
    found = dict.fromkeys(contents, "")
    for files in of_repository.values():
        choice, paths = EncodingChoice(), sorted(files)
        for at in range(0, len(paths), READ_AT_ONCE):
            part = {path: contents[files[path]] for path in paths[at : at + READ_AT_ONCE]}
            for path, encoding in choice.encodings(part).items():
                found[files[path]] = encoding
    return found


if __name__ == "__main__":
    main()
