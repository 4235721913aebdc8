"""What is said of each damage: `python -m tests.damage` writes benchmarks/results/damage.md.

Each harm is done to a copy of one data folder, while a server runs and before one starts.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.browser.product import SERVE, Product, running
from tests.damage import asking
from tests.damage.harms import KINDS, become_a_file, become_a_folder, delete, file_of, zero
from tests.damage.prepared import Prepared, prepare, until
from tests.house.sources import HOME
from tests.site.commands import WITHOUT_RIGHTS, Done, env_of, manage
from tests.support.small_disk import fill, small_disk

PAGE = HOME / "benchmarks" / "results" / "damage.md"
# Answers come from their content. Of the others somebody puts a folder in the place.
CONTENT = ("database", "part", "texts", "n-grams")
WORDS = {
    "zero": "a block zeroed",
    "delete": "deleted",
    "become_a_folder": "a folder in its place",
    "become_a_file": "a file in its place",
}
LOOKS = 4
WELL = "all parts are well"
FULL, CLOSED = "a full disk", "folders without permissions"
DAMAGE = re.compile(r'title="Answers say what they lack[^"]*">([^<]+)<')
Harm = Callable[[Path], None]
Sentences = Sequence[str]
INTRODUCTION = """\
# What is said of damage

`python -m tests.damage` wrote this on {day}. Each kind of file of a data folder
(`tests/damage/harms.py`) is harmed while a server runs, and before one starts, with
`CODEINFO_INGEST_REPAIR=ask`, so that the index stays as it is. The repository has six files.

First what tools answer; one that is not named answers as before. Then each part of `/health` that
is not well: the home page has the same sentences. Then what the Ingest page says of the repository,
and what `doctor` says that `/health` does not.
"""


def write(kinds: Sequence[str]) -> None:
    """Write the page, or print the sections of some kinds."""
    with TemporaryDirectory(prefix="codeinfo-texts-") as name:
        folder = Path(name)
        told = Telling(prepare(folder / "prepared"), folder)
        sections: dict[str, Callable[[], Iterator[str]]] = {
            kind: partial(of_kind, told, kind) for kind in KINDS
        }
        sections |= {FULL: told.of_a_full_disk, CLOSED: told.without_rights}
        parts = []
        for kind in kinds or sections:
            where = f": `{KINDS[kind]}`" if kind in KINDS else ""
            parts.append("\n".join([f"\n## {kind.capitalize()}{where}\n", *sections[kind]()]))
            print(parts[-1], flush=True)
    if not kinds:
        day = f"{datetime.now(UTC):%-d %B %Y}"
        PAGE.write_text("\n".join([INTRODUCTION.format(day=day), *parts]) + "\n")


def of_kind(told: "Telling", kind: str) -> Iterator[str]:
    """The sentences after a harm to a running server's file, and before a start."""
    is_folder = kind.startswith("folder")
    harm = become_a_file if is_folder else zero if kind in CONTENT else become_a_folder
    harm = delete if kind == "log of the database" else harm
    for name, tell, act in (
        (WORDS[harm.__name__], told.running, harm),
        (
            "deleted, before a start" if is_folder else f"{WORDS[harm.__name__]}, before a start",
            told.started,
            delete if is_folder else harm,
        ),
    ):
        yield f"- {name}:" + "".join(f"\n  - {one}" for one in tell(partial(_harm, kind, act)))


def _harm(kind: str, harm: Harm, data: Path) -> None:
    harm(file_of(data, kind))


class Telling:
    """Servers over copies of a prepared folder, and what they say."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self._prepared, self._folder = prepared, folder
        self._number = 0
        self._well: set[str] = set()
        self._well = {*self.running(lambda data: None)} - {WELL}

    def running(self, harm: Harm) -> Sentences:
        """What is said after a harm to the folder of a running server."""
        folder = self._copied()
        with self._prepared.serve(folder, CODEINFO_INGEST_REPAIR="ask") as product:
            assert until(lambda: not asking.health(product))
            harm(product.data)
            return self._said(product)

    def started(self, harm: Harm) -> Sentences:
        """What is said by a start after a harm, and then."""
        folder = self._copied()
        harm(folder / "data")
        log = folder / "serve.log"
        try:
            with self._prepared.serve(folder, CODEINFO_INGEST_REPAIR="ask") as product:
                said = self._said(product)
                return [*_of_start(log.read_text(), folder), *said]
        except AssertionError as error:
            if "the server did not start" not in str(error):
                raise
            return [f"the start is refused: “{_without(folder, log.read_text().strip())}”"]

    def of_a_full_disk(self) -> Iterator[str]:
        folder = self._folder / "full"
        with small_disk(folder, 300):
            self._prepared.copied(folder)
            with self._prepared.serve(folder) as product:
                fill(folder)
                yield from (f"- {sentence}" for sentence in self._said(product))

    def without_rights(self) -> Iterator[str]:
        """As for a user who may not read what another one has left."""
        for name in ("index", "texts", "grams"):
            folder = self._copied()
            with ExitStack() as stack:
                base = str(self._prepared.folder / "repos")
                command = (*WITHOUT_RIGHTS, *SERVE)
                server = running(folder, command=command, CODEINFO_INGEST_BASE=base)
                product = stack.enter_context(server)
                (product.data / name).chmod(0)
                stack.callback((product.data / name).chmod, 0o700)
                said = self._said(product, is_user=True)
            yield f"- `{name}/`:" + "".join(f"\n  - {sentence}" for sentence in said)

    def _copied(self) -> Path:
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        self._prepared.copied(folder)
        return folder

    def _said(self, product: Product, *, is_user: bool = False) -> Sentences:
        found = dict.fromkeys(_of_tools(asking.ask(product), self._prepared.answers))
        parts: dict[str, None] = {}
        for _ in range(LOOKS):
            parts |= dict.fromkeys(_of_health(product))
            until(lambda: False, 1)
        found |= parts or {WELL: None}
        found |= dict.fromkeys(_of_ingest_page(product))
        env = env_of(
            product.data,
            CODEINFO_INGEST_BASE=str(self._prepared.folder / "repos"),
            PORT=product.url.rpartition(":")[2],
        )
        known = {sentence.partition(" ")[2] for sentence in parts}
        done = manage(env, "doctor", "--json", user=is_user)
        found |= {s: None for s in _of_doctor(done) if s.partition(" ")[2] not in known}
        folder = product.data.parent
        return [said for one in found if (said := _without(folder, one)) not in self._well]


def _of_tools(answers: asking.Answers, before: asking.Answers) -> Iterator[str]:
    texts: dict[str, list[str]] = {}
    for name, answer in answers.items():
        if answer != before[name]:
            is_told = isinstance(answer, asking.Told)
            texts.setdefault(_short(answer) if is_told else "another answer", []).append(name)
    for text, names in texts.items():
        yield f"{', '.join(names) if len(names) < len(answers) - 2 else 'nearly all tools'}: {text}"


def _short(answer: str) -> str:
    """Code and message of an error, or the mark of an answer."""
    try:
        body = json.loads(answer)
    except ValueError:
        return f"“{answer}”"
    error = body.get("error") if isinstance(body.get("error"), dict) else body
    return f"`{error.get('code', '')}` “{error.get('message', error.get('error', ''))}”"


def _of_health(product: Product) -> Iterator[str]:
    for name, part in asking.health(product).items():
        yield _sentence(f"`{name}`", part)


def _sentence(where: str, part: Any) -> str:
    fix = f" Fix: “{part['fix']}”" if part.get("fix") else ""
    return f"{where} {part['word']}: “{part['detail']}”{fix}"


def _of_ingest_page(product: Product) -> Iterator[str]:
    page = httpx.get(f"{product.url}/ingest", timeout=asking.PATIENCE).text
    yield from (f"the Ingest page: “{unescape(text)}”" for text in DAMAGE.findall(page))


def _of_doctor(done: Done) -> Iterator[str]:
    if not done.stdout:  # it cannot begin
        yield f"`doctor` ends: “{done.stderr.strip().splitlines()[-1]}”"
        return
    for check in json.loads(done.stdout)["checks"]:
        if check["level"] in ("bad", "warn"):
            yield _sentence("`doctor`", check)


def _of_start(log: str, folder: Path) -> Iterator[str]:
    for line in log.splitlines():
        if line.strip().startswith("LOOK "):
            yield f"the start: “{_without(folder, line.strip().removeprefix('LOOK').strip())}”"


def _without(folder: Path, text: str) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(folder / "data"), "DATA").replace(str(folder), "FOLDER")
    text = re.sub(r"http://127\.0\.0\.1:\d+", "URL", text)
    text = re.sub(r"lost-[\dT:-]+", "lost-TIME", text)
    text = re.sub(r"\b[0-9a-f]{32,64}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID", text)
    text = re.sub(r"[\d,.]+ GB free", "N GB free", text)
    return re.sub(r"\bat 20\d\d-\d\d-\d\d \d\d:\d\d UTC", "at TIME", text)
