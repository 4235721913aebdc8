"""Checks of the parts of a running installation: database, embedder, vectors, providers, worker."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from django.db import DatabaseError, connection

from apps.agents.providers.base import Provider
from apps.core.config import config
from apps.core.data.database import ping
from apps.core.errors import CodeinfoError
from apps.core.system import disk, start_errors
from apps.core.system.command_lines import manage
from apps.index import queries
from apps.index.vectors.chroma import BROKEN
from apps.ingest.runs import orphans, queue
from apps.ingest.runs.orphans import Orphan
from apps.servers.kinds import OPENAI
from apps.servers.services import current
from apps.site import standby
from apps.site.checks.findings import Finding, Level
from apps.site.checks.runner import Check, in_thread

# How long a past stall is reported.
REMEMBERED = timedelta(hours=1)
# Orphans listed in a finding.
SHOWN = 10
# Damaged repositories listed in a finding.
DAMAGED_SHOWN = 3

DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}


def all_parts(*, opening: bool = True) -> list[Check]:
    """Return all checks, in the order in which they are shown.

    opening: whether to open an embedded store, which starts a process and takes a second
    """
    vectors = VECTORS if opening else VECTORS_IF_OPEN
    loop = [EVENT_LOOP] if standby.watching() else []
    unknown = [ORPHANS] if any(not orphan.elsewhere for orphan in orphans.known()) else []
    providers = map(provider_check, _providers())
    return [DATABASE, DISK, EMBEDDER, vectors, *unknown, *providers, WORKER, *loop]


def database_name() -> str:
    return DATABASE_NAMES.get(connection.vendor, connection.vendor)


def store_name() -> str:
    return f"Chroma at {config().chroma_url}" if config().chroma_url else "Chroma embedded"


def _database() -> Finding:
    name = database_name()
    try:
        ping()
    except (DatabaseError, OSError) as error:
        if reason := start_errors.sentence(error):
            return Finding("database", "Database", "bad", "Away", f"{reason} Chat works meanwhile.")
        return Finding(
            "database",
            "Database",
            "bad",
            "Away",
            f"{name} does not answer. Chat works, but nothing is stored.",
            "Start it, or set DATABASE_URL to one that answers.",
        )
    return Finding("database", "Database", "ok", "Connected", name)


def _disk() -> Finding:
    if forbidden := disk.forbidden():
        named = " and ".join(map(str, forbidden))
        detail = f"codeinfo may not read and write {named}. Ingests fail; search answers in part."
        fix = "Give it to the user who runs codeinfo: chown and chmod u+rwx."
        return Finding("disk", "Disk space", "bad", "No access", detail, fix)
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
    # Imported here, as the embedding package loads weights.
    from apps.embedding.catalogue import DEFAULT_MODEL, check_server, get_embedder  # noqa: PLC0415

    lock = queries.index_lock()
    embedder = get_embedder(lock.model if lock else DEFAULT_MODEL)
    own = ":" not in embedder.id
    embedder.close()
    if config().embedding_base_url or not own:
        check_server(embedder.id)
    where = "built in" if own else "over the network"
    return Finding("embedder", "Search and embedding", "ok", "Ready", f"{embedder.id}, {where}")


def _vectors() -> Finding:
    # Imported here, as chromadb takes a second.
    from apps.index.vectors.store import get_store  # noqa: PLC0415

    try:
        count = len(get_store().collections())
    except CodeinfoError as error:
        if error.code != BROKEN:
            raise
        return Finding("chroma", "Vector store", "bad", "Broken", error.message, _way_out())
    if damaged := _damaged(queries.damages()):
        return damaged
    contents = f"{store_name()}, {count} index{'' if count == 1 else 'es'}"
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
    """As `_vectors`, and read each collection, without changing anything. Slow; used if no server
    runs, as a server does this at its start."""
    from apps.ingest.runs import integrity  # noqa: PLC0415 - as above

    finding = _vectors()
    if finding.level == "bad":
        return finding
    states = ((root, integrity.state_of(root)) for root in integrity.roots_to_check())
    damages = {root.name: damage for root, state in states if (damage := state.damage(root))}
    return _damaged(damages) or finding


def _damaged(damages: dict[str, str]) -> Finding | None:
    """Return the finding for repositories of which vectors or chunks are missing, or None."""
    if not damages:
        return None
    named = ". ".join(f"{name}: {damage}" for name, damage in list(damages.items())[:DAMAGED_SHOWN])
    more = f". And {len(damages) - DAMAGED_SHOWN} more" if len(damages) > DAMAGED_SHOWN else ""
    return Finding("chroma", "Vector store", "bad", "Damaged", f"{named}{more}.", _way_out())


def _way_out() -> str:
    """Return how broken or lost vectors are repaired."""
    if config().ingest_repair == "auto":
        return "codeinfo ingests these folders again while it runs; the Ingest page shows errors."
    return "While codeinfo runs, choose Re-embed for these folders on the Ingest page."


async def _orphans() -> Finding:
    """Report the worker's latest result."""
    return orphans_finding(orphans.known())


def orphans_finding(found: Sequence[Orphan]) -> Finding:
    """Return the finding for indexes without a root, and how to remove them."""
    finding = partial(Finding, ORPHANS.id, ORPHANS.name)
    mine = [orphan for orphan in found if not orphan.elsewhere]
    others = [orphan for orphan in found if orphan.elsewhere]
    neighbours = f"Of other installations on this Chroma: {_listed(others)}" if others else ""
    if not mine:
        return finding("ok", "None", neighbours or "Every index has a folder in the database.")
    ids = " ".join(str(orphan.store) for orphan in mine[:SHOWN])
    return finding(
        "warn",
        "Unknown folders",
        " ".join(filter(None, [f"Not in this database, and kept: {_listed(mine)}", neighbours])),
        "If this data folder had another database, restore it. Otherwise ingest the folders again "
        "on the Ingest page, stop codeinfo, and delete the old indexes: "
        + manage(f"drop_index {ids}"),
    )


def _listed(found: Sequence[Orphan]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(orphan.label for orphan in found[:SHOWN]) + more + "."


async def _provider(provider: Provider) -> Finding:
    finding = partial(Finding, f"providers:{provider.id}", provider.label)
    state = await provider.availability()
    if not state.available:
        set_up = is_set_up(provider.id) or (
            provider.id == "openai" and (await in_thread(partial(current, OPENAI))).address
        )
        level: Level = "bad" if set_up else "off"
        word = "Away" if set_up else "Not available"
        return finding(level, word, state.reason or "Not set up.")
    try:
        models = await provider.models()
    except CodeinfoError as error:
        return finding("warn", "No models", error.message)
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    return finding("ok", "Ready", count + ("" if state.tools_available else ", without tools"))


def is_set_up(provider_id: str) -> bool:
    """Whether this provider is set up, so that its failure is a problem."""
    settings = config()
    set_up = {settings.chat_provider} | ({"openai"} if settings.openai_base_url else set())
    return provider_id in set_up


async def _worker() -> Finding:
    finding = partial(Finding, "worker", "Ingest worker")
    match queue.worker_state():
        case "idle":
            return finding("ok", "Ready", "Waits for folders to ingest.")
        case "working":
            return finding("ok", "Working", "An ingest is in progress.")
        case "absent":
            return finding("off", "Not here", "This process does not run ingests.")
        case _:
            return finding(
                "bad", "Stopped", "It has ended: ingests stay queued.", "Restart codeinfo."
            )


async def _event_loop() -> Finding:
    finding = partial(Finding, "eventLoop", "Server")
    watchdog = standby.watching()
    stall = watchdog.latest if watchdog else None
    if stall is None or datetime.now(UTC) - stall.since > REMEMBERED:
        return finding("ok", "Running", "It has responded at all times in the last hour.")
    when = f"for {stall.seconds:.0f} s at {stall.since:%H:%M:%S} UTC"
    fix = "Search the log for “stalled”: the entry names the place in the code."
    return finding("warn", "Stalled before", f"The server did not respond {when}.", fix)


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
EVENT_LOOP = Check("eventLoop", "Server", _event_loop)


def provider_check(provider: Provider) -> Check:
    on_timeout: Level = "bad" if is_set_up(provider.id) else "off"
    ask = partial(_provider, provider)
    return Check(f"providers:{provider.id}", provider.label, ask, on_timeout)


def _providers() -> list[Provider]:
    # Imported here, as the registry imports the SDKs of all providers.
    from apps.agents.providers.registry import providers  # noqa: PLC0415

    return list(providers().values())
