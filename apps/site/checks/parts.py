"""Checks of the parts of a running installation: database, embedder, index, providers, worker."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.db import DatabaseError, connection

from apps.agents.providers.base import Provider
from apps.core.config import config
from apps.core.data import damage, lost_changes
from apps.core.data.database import ping
from apps.core.errors import CodeinfoError
from apps.core.system import disk, start_errors
from apps.core.system.command_lines import manage
from apps.index import changes, queries, scrubbed
from apps.index.types import never_cancelled
from apps.index.vectors.following import following
from apps.ingest.runs import orphans
from apps.ingest.watching.states import known as watched
from apps.ingest.worker.supervisor import supervisor
from apps.retrieval.repositories import partly_ingested
from apps.retrieval.search_processes import search_processes
from apps.servers.kinds import OPENAI
from apps.servers.services import current
from apps.site import standby
from apps.site.checks.findings import Finding, Level, found
from apps.site.checks.runner import Check, in_thread

# How long a past stall is reported.
REMEMBERED = timedelta(hours=1)
# Orphans listed in a finding.
SHOWN = 10
# Damaged repositories listed in a finding.
DAMAGED_SHOWN = 3

# Why Chroma may be off, and what helps where it is needed.
NOT_USED = "Not used: CODEINFO_CHROMA is off, or codeinfo[chroma] is not installed."
USE = "Install and switch it on, or set CODEINFO_RETRIEVAL_MODE=hybrid."

# What is so while something else is in the place of a file or folder, and what helps.
REMADE = (
    "Ingests fail; searches may lack passages.",
    "Move what is there away: codeinfo makes it again.",
)
HIDDEN = (
    "Commands do not find this server.",
    "Stop codeinfo, move what is there away, and start codeinfo.",
)
NO_KEY = (
    "No worker and no server can start: ingests stay queued.",
    "Move what is there away, restore the file from a backup, and start codeinfo again.",
)
OF_MISPLACED = dict.fromkeys(disk.OF_SERVER, HIDDEN) | {disk.SECRET: NO_KEY}

# How a damaged index is repaired, by CODEINFO_INGEST_REPAIR.
REPAIRS = {
    "auto": "codeinfo ingests these folders again while it runs; the Ingest page shows errors.",
    "ask": "While codeinfo runs, choose Re-embed for these folders on the Ingest page.",
}

MODES = {"off": "not", "poll": "looked at from time to time", "watch": "watched"}

DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}


def all_parts() -> list[Check]:
    """Return all checks, in the order in which they are shown."""
    server = [FOLDERS, SEARCHES, EVENT_LOOP] if standby.watchdog else []
    providers = map(provider_check, _providers())
    return [DATABASE, DISK, EMBEDDER, INDEX, CHROMA, ORPHANS, *providers, WORKER, *server]


def database_name() -> str:
    return DATABASE_NAMES.get(connection.vendor, connection.vendor)


def store_name() -> str:
    return f"Chroma at {config().chroma_url}" if config().chroma_url else "Chroma embedded"


def _database() -> Finding:
    return _state_of_database(lambda: scrubbed.read().database)


def _examined() -> str:
    """Compare all pages and indexes of the database. Slow."""
    scrubbed.found_in_database(wrong := damage.examine(never_cancelled))
    return wrong


def _state_of_database(examined: Callable[[], str]) -> Finding:
    name = database_name()
    try:
        ping()
    except (DatabaseError, OSError) as error:
        if reason := start_errors.sentence(error):
            return found("bad", "Away", f"{reason} Chat works meanwhile.")
        return found(
            "bad",
            "Away",
            f"{name} does not answer. Chat works, but nothing is stored.",
            "Start it, or set DATABASE_URL to one that answers.",
        )
    if wrong := damage.met(scrubbed.read().finished_at) or examined():
        detail = f"{name}: {wrong}. What cannot be read of it is lost."
        return found("bad", "Damaged", detail, "Stop codeinfo and restore a backup.")
    file = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor == "sqlite" and _is_gone(file):
        detail = f"{file} was deleted or moved: what is stored from then on is lost at a stop."
        fix = "Move it back, or stop codeinfo and restore a backup."
        return found("bad", "Deleted", detail, fix)
    if folders := " and ".join(str(path) for path in disk.database_logs() if path.is_dir()):
        detail = f"{folders} must be a file: nothing is stored in {file}."
        return found("bad", "Misplaced", detail, "Stop codeinfo, move it away, and start codeinfo.")
    if lost := lost_changes.describe():
        fix = "Restore a backup, or go on, and delete the folder."
        return found("warn", "Changes lost", f"{name}. {lost}", fix)
    return found("ok", "Connected", name)


def _is_gone(file: Path) -> bool:
    """Whether the database is not there. A connection that opens a deleted one creates an empty
    file, which a server never begins with."""
    return not file.is_file() or bool(
        standby.watchdog and not connection.introspection.table_names()
    )


def _disk() -> Finding:
    if forbidden := disk.forbidden():
        named = " and ".join(map(str, forbidden))
        consequence = "Ingests fail; searches may lack passages or take longer."
        detail = f"codeinfo may not read and write {named}. {consequence}"
        fix = "Give it to the user who runs codeinfo: chown and chmod u+rwx."
        return found("bad", "No access", detail, fix)
    if misplaced := disk.misplaced():
        named = " and ".join(f"{path} must be a {kind}" for path, kind in misplaced.items())
        pairs = dict.fromkeys(OF_MISPLACED.get(path.name, REMADE) for path in misplaced)
        consequences, fixes = (" ".join(texts) for texts in zip(*pairs, strict=True))
        return found("bad", "Misplaced", f"{named}. {consequences}", fixes)
    spaces = disk.spaces()
    short = [space for space in spaces if space.is_short]
    if short:
        consequence = "Ingests end in an error; where nothing is left, chat is not stored."
        detail = " ".join([*map(str, short), consequence])
        fix = "Make room there, or set CODEINFO_DATA_DIR to another disk."
        word = "Full" if any(space.is_full for space in short) else "Nearly full"
        return found("bad", word, detail, fix)
    free = ", ".join(f"{space.free / 1e9:,.1f} GB free in {space.folder}" for space in spaces)
    return found("ok", "Enough", free)


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
    return found("ok", "Ready", f"{embedder.id}, {where}")


def _chroma() -> Finding:
    """Chroma follows the index: only mode `vector` misses it."""
    now = following()
    is_needed = config().retrieval_mode == "vector"
    match now.state:
        case "off":
            return found("bad" if is_needed else "off", "Off", NOT_USED, USE if is_needed else "")
        case "complete":
            return found("ok", "Complete", f"{store_name()}, {now.vectors:,} vectors")
        case "following":
            counts = f"{now.vectors:,} of {now.total:,} vectors"
            return found("ok", f"{now.percent} %", f"{store_name()}, {counts}")
    need = "Searches fail until then." if is_needed else "Search and ingest do not need it."
    detail = f"{now.reason} It is tried again by itself. {need}"
    return found("bad" if is_needed else "warn", "Failed", detail)


def _chroma_without_server() -> Finding:
    if config().chroma == "off":
        return _chroma()
    return found("off", "Not running", "It follows while codeinfo runs.")


def _index() -> Finding:
    """What the running server knows: it checks each repository at its start and as it reads."""
    damages = queries.damages()
    if not damages and changes.unreadable_at > scrubbed.read().finished_at:
        detail = "Something could not be read: all files are compared with their checksums."
        return found("warn", "Being checked", detail)
    return _state_of_index(damages)


def index_examined() -> Finding:
    """As `_index`, and compare all parts and texts with their checksums. Slow; used if no server
    runs, as a server does this itself."""
    from apps.ingest.runs import integrity  # noqa: PLC0415 - only doctor needs it

    return _state_of_index(queries.damages() | integrity.examine())


def _state_of_index(damages: dict[str, str]) -> Finding:
    """Return the finding for repositories of which parts or texts are missing, or for all."""
    if not damages:
        roots = queries.published_roots()
        contents = f"{len(roots)} repositor{'y' if len(roots) == 1 else 'ies'}"
        compared = f". {scrubbed.read().text}." if roots else ""
        partial = f" {some}" if (some := partly_ingested(roots)) else ""
        return found("ok", "Ready", contents + compared + partial)
    named = ". ".join(f"{name}: {damage}" for name, damage in list(damages.items())[:DAMAGED_SHOWN])
    more = f". And {len(damages) - DAMAGED_SHOWN} more" if len(damages) > DAMAGED_SHOWN else ""
    return found("bad", "Damaged", f"{named}{more}.", REPAIRS[config().ingest_repair])


def _orphans() -> Finding:
    """Report the indexes without a root, and how to remove them."""
    unknown = orphans.find()
    if not unknown:
        return found("ok", "None", "Every index has a folder in the database.")
    shown = unknown[:SHOWN]
    more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    return found(
        "warn",
        "Unknown folders",
        f"Not in this database, and kept: {', '.join(each.label for each in shown)}{more}. If this "
        "data folder had another database, its conversations and users are missing, too.",
        "Restore that database. Otherwise ingest the folders again "
        "on the Ingest page, and delete the old indexes: "
        + manage(f"drop_index {' '.join(str(each.root) for each in shown)}"),
    )


async def _provider(provider: Provider) -> Finding:
    state = await provider.availability()
    if not state.available:
        set_up = is_set_up(provider.id) or (
            provider.id == "openai" and (await in_thread(partial(current, OPENAI))).address
        )
        level: Level = "bad" if set_up else "off"
        word = "Away" if set_up else "Not available"
        return found(level, word, state.reason or "Not set up.")
    try:
        models = await provider.models()
    except CodeinfoError as error:
        return found("warn", "No models", error.message)
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    return found("ok", "Ready", count + ("" if state.tools_available else ", without tools"))


def is_set_up(provider_id: str) -> bool:
    """Whether this provider is set up, so that its failure is a problem."""
    settings = config()
    set_up = {settings.chat_provider} | ({"openai"} if settings.openai_base_url else set())
    return provider_id in set_up


def _worker() -> Finding:
    match supervisor.state():
        case "absent":
            return found("off", "Not here", "This process does not run ingests.")
        case "lost":
            lost = "It was lost, and is started again: ingests stay queued."
            return found("bad", "Lost", lost, "Search the log for “the worker was lost”.")
    if queries.active_run() is None:
        return found("ok", "Ready", "Waits for folders to ingest.")
    return found("ok", "Working", "An ingest is in progress.")


def _folders() -> Finding:
    """Whether changes of the ingested folders are noticed."""
    known = [(root.name, folder) for root in queries.published_roots() if (folder := watched(root))]
    if away := [f"{name}: {folder.problem}" for name, folder in known if folder.problem]:
        more = f" And {len(away) - SHOWN} more." if len(away) > SHOWN else ""
        detail = f"{' '.join(away[:SHOWN])}{more} What was published before can be searched."
        return found("warn", "Away", detail, "It is looked for, and then ingested, by itself.")
    modes = Counter(folder.mode for _, folder in known)
    if not modes.keys() - {"off"}:
        return found("off", "Not watched", "Changes wait for an ingest.")
    counts = ", ".join(f"{count} {MODES[mode]}" for mode, count in sorted(modes.items()))
    notes = " ".join(sorted({folder.note for _, folder in known if folder.mode == "poll"}))
    return found("ok", "Followed", f"{counts}. {notes}".strip())


async def _searches() -> Finding:
    lost = search_processes.lost
    if lost is None or datetime.now(UTC) - lost.at > REMEMBERED:
        return found("ok", "Running", "No search process was lost in the last hour.")
    detail = f"A search process was lost at {lost.at:%H:%M:%S} UTC: {lost.reason}."
    answered = "The server answered its searches."
    return found("warn", "Process lost", f"{detail} {answered}", "Search the log for “lost”.")


async def _event_loop() -> Finding:
    stall = standby.watchdog.latest if standby.watchdog else None
    if stall is None or datetime.now(UTC) - stall.since > REMEMBERED:
        return found("ok", "Running", "It has responded at all times in the last hour.")
    when = f"for {stall.seconds:.0f} s at {stall.since:%H:%M:%S} UTC"
    fix = "Search the log for “stalled”: the entry names the place in the code."
    return found("warn", "Stalled before", f"The server did not respond {when}.", fix)


def _threaded(id: str, name: str, work: Callable[[], Finding]) -> Check:
    return Check(id, name, partial(in_thread, work))


DATABASE = _threaded("database", "Database", _database)
# To examine a large one takes minutes.
DATABASE_EXAMINED = replace(
    _threaded("database", "Database", partial(_state_of_database, _examined)), on_timeout="warn"
)
DISK = _threaded("disk", "Disk space", _disk)
EMBEDDER = _threaded("embedder", "Search and embedding", _embedder)
INDEX = _threaded("index", "Index", _index)
INDEX_EXAMINED = _threaded("index", "Index", index_examined)
CHROMA = _threaded("chroma", "Chroma", _chroma)
CHROMA_WITHOUT_SERVER = _threaded("chroma", "Chroma", _chroma_without_server)
ORPHANS = _threaded("orphans", "Unknown folders", _orphans)
WORKER = _threaded("worker", "Ingest worker", _worker)
FOLDERS = _threaded("folders", "Folders", _folders)
SEARCHES = Check("searches", "Searches", _searches)
EVENT_LOOP = Check("eventLoop", "Server", _event_loop)


def provider_check(provider: Provider) -> Check:
    on_timeout: Level = "bad" if is_set_up(provider.id) else "off"
    ask = partial(_provider, provider)
    return Check(f"providers:{provider.id}", provider.label, ask, on_timeout)


def _providers() -> list[Provider]:
    # Imported here, as the registry imports the SDKs of all providers.
    from apps.agents.providers.registry import providers  # noqa: PLC0415

    return list(providers().values())
