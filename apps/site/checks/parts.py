"""The parts that a process stands on: database, embedder, vectors, providers, worker."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from django.db import DatabaseError, connection

from apps.agents.providers.base import Provider
from apps.core import disk, start_errors
from apps.core.config import config
from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.index.vectors.chroma import BROKEN
from apps.ingest.runs import orphans, queue
from apps.ingest.runs.orphans import Orphan
from apps.site import standby
from apps.site.checks.asking import Check, in_thread
from apps.site.checks.findings import Finding, Level

# How long a stall that is over is told of.
REMEMBERED = timedelta(hours=1)
# Roots that one finding lists.
SHOWN = 10

# Damaged repositories that are named.
DAMAGED_SHOWN = 3

DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}


def all_parts(*, opening: bool = True) -> list[Check]:
    """Every part, in the order in which they are shown.

    Without `opening` an embedded store that nobody has used yet is left alone: to open it costs a
    process and a second.
    """
    vectors = VECTORS if opening else VECTORS_IF_OPEN
    loop = [EVENT_LOOP] if standby.watching() else []
    unknown = [ORPHANS] if any(not each.elsewhere for each in orphans.known()) else []
    providers = map(provider_check, _providers())
    return [DATABASE, DISK, EMBEDDER, vectors, *unknown, *providers, WORKER, *loop]


def database_name() -> str:
    return DATABASE_NAMES.get(connection.vendor, connection.vendor)


def store_name() -> str:
    return f"Chroma at {config().chroma_url}" if config().chroma_url else "Chroma embedded"


def _database() -> Finding:
    name = database_name()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, OSError) as error:
        if reason := start_errors.sentence(error):
            return Finding("database", "Database", "bad", "Away", f"{reason} Chat works meanwhile.")
        return Finding(
            "database",
            "Database",
            "bad",
            "Away",
            f"{name} does not answer. Chat works, nothing is kept.",
            "Start it, or set DATABASE_URL to one that answers.",
        )
    return Finding("database", "Database", "ok", "Connected", name)


def _disk() -> Finding:
    spaces = disk.spaces()
    short = [space for space in spaces if space.is_short]
    if short:
        consequence = "Ingests end in an error; where nothing is left, chat is not stored."
        detail = " ".join([*map(str, short), consequence])
        fix = "Make room there, or set CODEINFO_DATA_DIR to another disk."
        word = "Full" if min(space.free for space in short) < disk.MIN_BYTES else "Nearly full"
        return Finding("disk", "Disk space", "bad", word, detail, fix)
    free = ", ".join(f"{space.free / 1e9:,.1f} GB free in {space.folder}" for space in spaces)
    return Finding("disk", "Disk space", "ok", "Enough", free)


def _embedder() -> Finding:
    # The embedding package loads weights; it is imported when it is first needed.
    from apps.embedding import DEFAULT_MODEL, get_embedder, reach  # noqa: PLC0415

    lock = queries.index_lock()
    embedder = get_embedder(lock.model if lock else DEFAULT_MODEL)
    own = ":" not in embedder.id
    embedder.close()
    if config().embedding_base_url or not own:
        reach(embedder.id)
    where = "built in" if own else "over the network"
    return Finding("embedder", "Search and embedding", "ok", "Ready", f"{embedder.id}, {where}")


def _vectors() -> Finding:
    # chromadb takes a second to import.
    from apps.index.vectors.store import get_store  # noqa: PLC0415

    try:
        count = len(get_store().collections())
    except CodeinfoError as error:
        if error.code != BROKEN:
            raise
        return Finding("chroma", "Vector store", "bad", "Broken", error.message, _way_out())
    if damaged := _damaged(queries.damages()):
        return damaged
    contents = f"{store_name()}, {count} collection{'' if count == 1 else 's'}"
    return Finding("chroma", "Vector store", "ok", "Ready", contents)


def _vectors_if_open() -> Finding:
    from apps.index.vectors.store import is_open  # noqa: PLC0415 - as above

    if config().chroma_url or is_open():
        return _vectors()
    if damaged := _damaged(queries.damages()):
        return damaged
    later = f"{store_name()}, opened when it is first used"
    return Finding("chroma", "Vector store", "ok", "Closed", later)


def vectors_examined() -> Finding:
    """The same where no server runs, which would have looked at its start: each collection is read,
    nothing is changed. Takes a while."""
    from apps.ingest.runs import integrity  # noqa: PLC0415 - as above

    found = _vectors()
    if found.level == "bad":
        return found
    states = ((root, integrity.state_of(root)) for root in integrity.roots_to_check())
    damages = {root.name: damage for root, state in states if (damage := state.damage(root))}
    return _damaged(damages) or found


def _damaged(damages: dict[str, str]) -> Finding | None:
    """Of repositories that lack vectors, by name."""
    if not damages:
        return None
    named = ". ".join(f"{name}: {damage}" for name, damage in list(damages.items())[:DAMAGED_SHOWN])
    more = f". And {len(damages) - DAMAGED_SHOWN} more" if len(damages) > DAMAGED_SHOWN else ""
    detail = f"{named}{more}. Words answer meanwhile."
    return Finding("chroma", "Vector store", "bad", "Damaged", detail, _way_out())


def _way_out() -> str:
    """What mends vectors that are broken or lost."""
    if config().ingest_repair == "auto":
        return (
            "codeinfo ingests these folders again while it runs; the Ingest page tells if it fails."
        )
    return "While codeinfo runs, choose Re-embed for these folders on the Ingest page."


async def _orphans() -> Finding:
    """What the worker found last."""
    return orphans_finding(orphans.known())


def orphans_finding(found: Sequence[Orphan]) -> Finding:
    """Roots that the index names and the database does not know, with the way to be rid of them."""
    finding = partial(Finding, ORPHANS.id, ORPHANS.name)
    mine = [each for each in found if not each.elsewhere]
    others = [each for each in found if each.elsewhere]
    neighbours = f"Of other installations on this Chroma: {_listed(others)}" if others else ""
    if not mine:
        return finding("ok", "None", neighbours or "The database knows all that the index holds.")
    ids = " ".join(str(each.root_id) for each in mine[:SHOWN])
    return finding(
        "warn",
        "Unknown folders",
        " ".join(filter(None, [f"Not in this database, and kept: {_listed(mine)}", neighbours])),
        "If another database was here, put it back. Else ingest the folders again on the Ingest "
        f"page, stop codeinfo, and delete what is left over: manage.py drop_index {ids}",
    )


def _listed(found: Sequence[Orphan]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(each.label for each in found[:SHOWN]) + more + "."


async def _provider(provider: Provider) -> Finding:
    finding = partial(Finding, f"providers:{provider.id}", provider.label)
    state = await provider.availability()
    if not state.available:
        wanted = is_wanted(provider.id)
        level: Level = "bad" if wanted else "off"
        return finding(level, "Away" if wanted else "Not available", state.reason or "Not set up.")
    try:
        models = await provider.models()
    except CodeinfoError as error:
        return finding("warn", "No models", error.message)
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    return finding("ok", "Ready", count + ("" if state.tools_available else ", without tools"))


def is_wanted(provider_id: str) -> bool:
    """Whether somebody has set this provider up: that it is away is then no choice."""
    known = config()
    set_up = {known.chat_provider} | ({"openai"} if known.openai_base_url else set())
    return provider_id in set_up


async def _worker() -> Finding:
    finding = partial(Finding, "worker", "Ingest worker")
    match queue.worker_state():
        case "idle":
            return finding("ok", "Ready", "Waits for folders to ingest.")
        case "working":
            return finding("ok", "Working", "An ingest is under way.")
        case "absent":
            return finding("off", "Not here", "This process takes no ingests.")
        case _:
            return finding(
                "bad", "Stopped", "Its thread has ended: ingests stay queued.", "Restart codeinfo."
            )


async def _event_loop() -> Finding:
    finding = partial(Finding, "eventLoop", "Event loop")
    watchdog = standby.watching()
    stall = watchdog.latest if watchdog else None
    if stall is None or datetime.now(UTC) - stall.since > REMEMBERED:
        return finding("ok", "Running", "Turns without a pause.")
    when = f"for {stall.seconds:.0f} s at {stall.since:%H:%M:%S} UTC"
    fix = "The log says where, under “event loop stalled”."
    return finding("warn", "Stalled before", f"Nothing was answered {when}.", fix)


def _threaded(id: str, name: str, work: Callable[[], Finding]) -> Check:
    return Check(id, name, partial(in_thread, work))


DATABASE = _threaded("database", "Database", _database)
DISK = _threaded("disk", "Disk space", _disk)
EMBEDDER = _threaded("embedder", "Search and embedding", _embedder)
VECTORS = _threaded("chroma", "Vector store", _vectors)
VECTORS_EXAMINED = _threaded("chroma", "Vector store", vectors_examined)
VECTORS_IF_OPEN = _threaded("chroma", "Vector store", _vectors_if_open)
ORPHANS = Check("orphans", "Unknown folders", _orphans)
WORKER = Check("worker", "Ingest worker", _worker)
EVENT_LOOP = Check("eventLoop", "Event loop", _event_loop)


def provider_check(provider: Provider) -> Check:
    silence: Level = "bad" if is_wanted(provider.id) else "off"
    ask = partial(_provider, provider)
    return Check(f"providers:{provider.id}", provider.label, ask, silence)


def _providers() -> list[Provider]:
    # The registry knows every provider and their SDKs; only who asks about them needs it.
    from apps.agents.providers.registry import providers  # noqa: PLC0415

    return list(providers().values())
