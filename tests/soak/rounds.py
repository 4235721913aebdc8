"""One round: random work, one fault at a random moment, its end, and what must hold then."""

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx

from tests.soak import checks, repositories
from tests.soak.power import can_be_lost
from tests.soak.server import HELPER, PARSER, WORKER, Died, patient
from tests.soak.world import MODEL, World

# Within this time of a round's begin its fault comes; an ingest takes about as long.
FAULT_WITHIN_SECONDS = 2.5
# What has to come to its end by itself has this long: the worker sweeps every half minute.
PATIENCE_SECONDS, LOOK_SECONDS = 150.0, 0.1
HELPER_SECONDS = 12.0
ENDED = ("completed", "skipped", "cancelled", "error", "needs_confirmation")
# Statuses above 499 that are answers: a store or a database is away for the moment.
AWAY = (502, 503)
POWER_LOST = "power lost"


class Round:
    """Round `number` of a world; `play` returns its record."""

    def __init__(self, world: World, number: int, kind: str = "") -> None:
        self.world, self.number = world, number
        self.rng = Random(f"{world.seed}/{number}")
        self.kind = kind or kind_of(world, number)
        self.done: list[str] = []
        self.violations: list[str] = []
        self.runs: list[str] = []
        self.removed: set[str] = set()
        self.edited: set[str] = set()
        self.had: dict[str, int] = {}

    def play(self) -> dict[str, Any]:
        began, log = time.monotonic(), self._log_bytes()
        kills = self.world.server.kills
        try:
            self.prepare()
            self.had = self._published()
            self._work_and_fault()
            self.settle()
            self._check()
        except Died as error:
            self.violations.append(str(error))
        self.violations += self._tracebacks(log)
        return {
            "round": self.number,
            "kind": self.kind,
            "done": self.done,
            "kills": self.world.server.kills - kills,
            "seconds": round(time.monotonic() - began, 1),
            "violations": self.violations,
        }

    # The steps

    def prepare(self) -> None:
        server, own_clock = self.world.server, self.kind == "clock jumped"
        # A server whose clock has jumped goes on with one that is set right.
        needs_clock = own_clock and not server.has_own_clock
        if server.alive and (needs_clock or self.kind == POWER_LOST):
            server.end()
        if self.kind == POWER_LOST:
            self.world.power.on()
        self.world.clock.write_text("+0")
        if not server.alive:
            server.start(own_clock=own_clock)

    def _work_and_fault(self) -> None:
        verbs = self.rng.choices(VERBS, WEIGHTS, k=self.rng.randrange(1, 5))
        verbs.insert(0, self.rng.choice((start, change)))
        work = threading.Thread(target=self._work, args=(verbs,))
        work.start()
        time.sleep(self.rng.uniform(0, FAULT_WITHIN_SECONDS))
        FAULTS[self.kind](self)
        work.join()

    def _work(self, verbs: list[Callable[["Round"], str]]) -> None:
        for verb in verbs:
            self.done.append(f"{verb.__name__.strip('_')}: {verb(self)}")
            time.sleep(self.rng.uniform(0, 0.3))

    def settle(self) -> None:
        """End the fault, and wait until everything that was begun has come to its end."""
        self.world.disk.free()
        for root in self.world.roots:
            repositories.bring_back(root)
        if not self.world.server.alive:
            self.world.server.start()
        for run in self.runs:
            self.wait_for(run)

    def _check(self) -> None:
        self._check_roots(self._published())
        for root in self._rooted():
            self._ingest_again(root)
        self._wait_for_agreement()
        for root in self._rooted():
            self.violations += checks.unlike_a_clean_ingest(self.world.data, root)
        self.violations += checks.lost_messages(self.world.server, self.world.sent)

    def _check_roots(self, published: dict[str, int]) -> None:
        """What nobody removed is published, and where nobody edited, all of it."""
        for path, chunks in self.had.items():
            if path not in self.removed and path not in published:
                self.violations.append(f"{path} is not published any more")
            untouched = not any(edited.startswith(path) for edited in self.edited)
            if untouched and published.get(path, chunks) != chunks:
                self.violations.append(f"{path} had {chunks} chunks and has {published[path]}")

    # What may be asked

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response | None:
        """As Server.ask; an answer that no client can understand is a violation."""
        response = self.world.server.ask(method, path, body)
        if response is not None:
            status = response.status_code
            if status >= 500 and status not in AWAY:
                self.violations.append(f"{method} {path}: {status} {response.text[:300]}")
            try:
                response.json()
            except ValueError:
                self.violations.append(f"{method} {path}: no JSON: {response.text[:300]}")
        return response

    def run(self, response: httpx.Response | None) -> str:
        """Remember the run that was begun; the answer in a word."""
        if response is None:
            return "no answer"
        if response.status_code == 202:
            self.runs.append(response.json()["runId"])
        return str(response.status_code)

    def _published(self) -> dict[str, int]:
        """How many chunks each published root has."""
        response = self.ask("GET", "/ingest/roots")
        if response is None or response.status_code != 200:
            raise Died("the roots are not told")
        return {each["path"]: each["counts"]["chunks"] for each in response.json()["roots"]}

    def _rooted(self) -> list[Path]:
        published = self._published()
        return [root for root in self.world.roots if str(root) in published]

    def wait_for(self, run: str) -> dict[str, Any]:
        """A run as it ended."""
        reported: dict[str, Any] = {}
        for _ in self.while_patient():
            response = self.ask("GET", f"/ingest/status/{run}")
            if response is not None and response.status_code == 200:
                reported = response.json()
                if reported["state"] in ENDED:
                    return reported
        self.violations.append(f"run {run} does not end: {json.dumps(reported)[:300]}")
        return reported

    def _ingest_again(self, root: Path) -> None:
        """Bring the index of a root up to date with its folder."""
        text = "no answer"
        for _ in self.while_patient():
            response = self.ask("POST", f"/ingest/reembed/{quote(str(root), safe='')}")
            if response is None or response.status_code != 202:
                text = response.text if response is not None else "no answer"
                continue
            ended = self.wait_for(response.json()["runId"])
            if ended.get("state") in ("completed", "skipped"):
                return
            text = json.dumps(ended)
            break
        self.violations.append(f"{root} is not ingested again: {text[:600]}")

    def _wait_for_agreement(self) -> None:
        found: list[str] = []
        for _ in self.while_patient():
            found = checks.disagreements(self.world.data)
            if not found:
                return
        self.violations += found[:10]

    def while_patient(self) -> Iterator[None]:
        deadline = time.monotonic() + patient(PATIENCE_SECONDS)
        while time.monotonic() < deadline:
            yield
            time.sleep(LOOK_SECONDS)

    def _log_bytes(self) -> int:
        log = self.world.server.log
        return log.stat().st_size if log.exists() else 0

    def _tracebacks(self, since: int) -> list[str]:
        with self.world.server.log.open("rb") as file:
            file.seek(since)
            written = file.read().decode(errors="replace")
        parts = written.split("Traceback (most recent call last)")[1:]
        return [f"traceback: …{part[-1500:]}" for part in parts[:3]]


# What a round does


def start(round: Round) -> str:
    missing = [root for root in round.world.roots if str(root) not in round.had]
    root = round.rng.choice(missing or round.world.roots)
    name = str(root.relative_to(round.world.folder / "repos"))
    body = {"path": str(root), "name": name, "model": MODEL}
    return round.run(round.ask("POST", "/ingest/start", body))


def change(round: Round) -> str:
    """Edit a repository that is published, and ingest what is new."""
    roots = [root for root in round.world.roots if str(root) in round.had]
    if not roots:
        return "nothing is published"
    # The one whose ingest takes long enough to be harmed, more often than the others.
    large = [root for root in roots if root.name == repositories.LARGE]
    root = round.rng.choice([*roots, *large * len(roots)])
    return f"{edit(round, root)} {reembed(round, root)}"


def reembed(round: Round, root: Path | None = None) -> str:
    root = root or round.rng.choice(round.world.roots)
    return round.run(round.ask("POST", f"/ingest/reembed/{quote(str(root), safe='')}"))


def remove(round: Round) -> str:
    root = round.rng.choice(round.world.roots)
    round.removed.add(str(root))
    return _status(round.ask("POST", f"/ingest/remove/{quote(str(root), safe='')}"))


def cancel(round: Round) -> str:
    if not round.runs:
        return "nothing to cancel"
    return _status(round.ask("POST", f"/ingest/cancel/{round.runs[-1]}"))


def edit(round: Round, root: Path | None = None) -> str:
    root = root or round.rng.choice(round.world.roots)
    round.edited.add(str(root))
    try:
        return repositories.edit(root, round.rng)
    except (OSError, IndexError):
        return "the folder is away"


def search(round: Round) -> str:
    query = " ".join(round.rng.choices(repositories.WORDS, k=3))
    return _status(round.ask("POST", "/tools/vector-search", {"query": query}))


def chat(round: Round) -> str:
    name = f"talk-{round.rng.randrange(8)}"
    message = f"Where is {round.rng.choice(repositories.WORDS)}? ({round.number}/{len(round.done)})"
    body = {"provider": "builtin", "model": "search", "conversationId": name, "message": message}
    response = round.ask("POST", "/chat", body)
    # While the database cannot be written, the process alone remembers, and says so.
    if response is not None and response.status_code == 202 and round.kind != "disk full":
        round.world.sent.setdefault(name, []).append(message)
    return _status(response)


def health(round: Round) -> str:
    response = round.ask("GET", "/health")
    if response is not None and response.json().get("status") != "ok":
        round.violations.append(f"/health: {response.text[:300]}")
    return _status(response)


def _status(response: httpx.Response | None) -> str:
    return str(response.status_code) if response is not None else "no answer"


VERBS = [start, change, reembed, remove, cancel, edit, search, chat, health]
WEIGHTS = [6, 6, 3, 1, 2, 3, 2, 3, 1]


# What harms it


def _nothing(round: Round) -> None:
    return


def _kill_server(round: Round) -> None:
    round.world.server.end(signal.SIGKILL)


def _stop_server(round: Round) -> None:
    round.world.server.end(signal.SIGTERM)


def _kill_starting_server(round: Round) -> None:
    """Killed, and once more while it starts and takes away what the first kill has left."""
    round.world.server.end(signal.SIGKILL)
    round.world.server.launch()
    time.sleep(round.rng.uniform(0, 6))
    round.world.server.end(signal.SIGKILL)


def _kill_helpers(round: Round) -> None:
    """As soon as there is one: Chroma's begins some seconds after a start or an ingest."""
    killed, end = 0, time.monotonic() + HELPER_SECONDS
    while not killed and time.monotonic() < end:
        killed = round.world.server.kill_children(HELPER)
        time.sleep(LOOK_SECONDS)
    round.done.append(f"killed {killed} helpers")


def _kill_worker(round: Round) -> None:
    """Up to three times, and once the server with it."""
    for _ in range(round.rng.randrange(1, 4)):
        round.done.append(f"killed {round.world.server.kill_children(WORKER)} workers")
        time.sleep(round.rng.uniform(0, 3))
    _kill_sometimes(round)


def _kill_parsers(round: Round) -> None:
    killed = 0
    for _ in range(20):
        killed += round.world.server.kill_children(PARSER)
        time.sleep(0.05)
    round.done.append(f"killed {killed} parsers")


def _vanish(round: Round) -> None:
    repositories.vanish(round.rng.choice(round.world.roots[:4]))
    time.sleep(round.rng.uniform(0, 1))


def _fill_disk(round: Round) -> None:
    round.world.disk.fill(round.rng.randrange(0, 4 << 20))
    for _ in round.while_patient():
        response = round.ask("GET", "/health")
        if response is None or "disk" in response.json()["degraded"]:
            return
    round.violations.append("/health does not tell that the disk is full")


def _jump(round: Round) -> None:
    round.world.clock.write_text(f"{round.rng.randrange(-200_000, 200_000):+d}")
    time.sleep(1.5)


def _harm_chroma(round: Round) -> None:
    """All of it is lost, or random bytes are somewhere in it."""
    _kill_sometimes(round)
    folder = round.world.data / "chroma"
    if round.rng.random() < 0.5:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        _overwrite(round, folder)


def _lose_parts(round: Round) -> None:
    _kill_sometimes(round)
    for path in sorted((round.world.data / "index").glob("*.part")):
        if round.rng.random() < 0.5:
            path.unlink(missing_ok=True)
            round.done.append(f"deleted {path.name}")


def _damage_index(round: Round) -> None:
    """Random bytes somewhere in a part."""
    _kill_sometimes(round)
    _overwrite(round, round.world.data / "index")


def _lose_power(round: Round) -> None:
    round.world.server.end(signal.SIGKILL)
    round.world.power.lose(round.rng)


def _kill_sometimes(round: Round) -> None:
    if round.rng.random() < 0.5:
        round.world.server.end(signal.SIGKILL)


def _overwrite(round: Round, folder: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    if files:
        path = round.rng.choice(files)
        with path.open("r+b") as file:
            file.seek(round.rng.randrange(path.stat().st_size))
            file.write(round.rng.randbytes(64))
        round.done.append(f"damaged {path.name}")


FAULTS: dict[str, Callable[[Round], None]] = {
    "nothing": _nothing,
    "server killed": _kill_server,
    "server stopped": _stop_server,
    "killed again at its start": _kill_starting_server,
    "worker killed": _kill_worker,
    "helpers killed": _kill_helpers,
    "parsers killed": _kill_parsers,
    "folder vanished": _vanish,
    "disk full": _fill_disk,
    "clock jumped": _jump,
    "Chroma harmed": _harm_chroma,
    "parts lost": _lose_parts,
    "index damaged": _damage_index,
    POWER_LOST: _lose_power,
}


@cache
def kinds(can_be_full: bool) -> list[str]:
    """The faults that this machine lets us arrange. can_be_full: whether a disk can"""
    arranged = {"disk full": can_be_full, POWER_LOST: can_be_lost()}
    return [kind for kind in FAULTS if arranged.get(kind, True)]


def kind_of(world: World, number: int) -> str:
    """Each kind once before any comes again."""
    known = kinds(world.disk.can_be_full)
    block, place = divmod(number, len(known))
    return Random(f"{world.seed}/kinds/{block}").sample(known, len(known))[place]
