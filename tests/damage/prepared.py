"""A data folder that has something of each kind, whose server was killed."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.browser.product import Product, running
from tests.damage import asking
from tests.support.git import commit_all, init
from tests.support.ingested import CALLER, SAMPLE, write_files
from tests.support.served import ingest_into

# All is whole again within so many questions, at POLL_SECONDS from one to the next.
POLLS, POLL_SECONDS = 120, 0.5


@dataclass(frozen=True)
class Prepared:
    """The data folder, and the answers of its server."""

    folder: Path
    answers: asking.Answers

    def copied(self, folder: Path) -> Path:
        shutil.copytree(self.folder / "data", folder / "data")
        return folder / "data"

    def serve(self, folder: Path, **environ: str) -> AbstractContextManager[Product]:
        return running(folder, CODEINFO_INGEST_BASE=str(self.folder / "repos"), **environ)


def prepare(folder: Path) -> Prepared:
    with running(folder) as product:
        repository = write_files(init(product.repos / "lighthouse"), SAMPLE | CALLER)
        commit_all(repository)
        ingest_into(product, repository)
        asking.chat(product)
        assert until(lambda: not asking.health(product) and _has_grams(product))
        answers = asking.ask(product)
        os.kill(product.pid, signal.SIGKILL)
    scrub = {"finished_at": time.time(), "done": 0, "total": 0}
    (folder / "data" / "scrub.json").write_text(json.dumps(scrub))
    assert not [answer for answer in answers.values() if isinstance(answer, asking.Told)], answers
    return Prepared(folder, answers)


def _has_grams(product: Product) -> bool:
    return any((product.data / "grams").glob("*.grams"))


def until(condition: Callable[[], bool], polls: int = POLLS) -> bool:
    for _ in range(polls):
        if condition():
            return True
        time.sleep(POLL_SECONDS)
    return False
