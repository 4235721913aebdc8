"""The configuration: a table of every environment variable.

`codeinfo.settings` reads it once (`Config.read(os.environ)`). Other code calls `config()` when it
needs a value, so that tests can change it. A blank variable is unset; a wrong value stops the start
with an error that names the variable (see `values.parsers` for those that do not). `make fix` writes
the tables of docs/configuration.md, and .env.example, from this table (`scripts/settings.py`).
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from apps.core.values.addresses import bracketed
from apps.core.values.parsers import (
    IPNetwork,
    NumberOr,
    Parse,
    TrueOrNot,
    address,
    boolean,
    choice,
    chroma_url,
    clamped,
    database_url,
    editor,
    fraction,
    http_url,
    integer,
    lmstudio_token,
    networks,
    pairs,
    path,
    paths,
    text,
    words,
)

BASE_DIR = Path(__file__).resolve().parents[2]
# A wheel has the project tree in `codeinfo_cli/project` (codeinfo_cli/project.py).
IS_INSTALLED = BASE_DIR.parent.name == "codeinfo_cli"
PROVIDERS = ("builtin", "openai", "lmstudio", "codex")
DEFAULT_CUTOFF = 1.4  # squared L2 of unit vectors
# Variables that are secrets, or URLs that may contain a password.
SECRET = re.compile(r"(TOKEN|KEY|_URL|_ENDPOINT)$")


def in_group(group: str, env: str, parse: Parse, default: Any, doc: str, shown: str = "") -> Any:
    """Declare a variable. A callable default gets the settings declared before it.

    `repr` leaves out secrets, as error pages and tracebacks show it.

    group: the heading of its table in docs/configuration.md
    doc: its meaning there
    shown: its default there, where that is computed
    """
    metadata = {"group": group, "env": env, "parse": parse, "default": default}
    metadata |= {"doc": doc, "shown": shown}
    return field(metadata=metadata, repr=SECRET.search(env) is None)


places = partial(in_group, "Where things are")
access = partial(in_group, "Access")
ingest = partial(in_group, "Ingest")
embedding = partial(in_group, "Embedding servers")
retrieval = partial(in_group, "Retrieval")
chat = partial(in_group, "Chat and MCP")
codex = partial(in_group, "Codex")
limits = partial(in_group, "Limits of an answer")
logs = partial(in_group, "Logs")
traces = partial(in_group, "Traces")


def _in_data(*parts: str) -> Callable[[dict[str, Any]], Path]:
    return lambda known: cast(Path, known["data_dir"]).joinpath(*parts)


def _own_mcp(known: dict[str, Any]) -> str:
    bound = known["bind"]
    host = "127.0.0.1" if bound in ("0.0.0.0", "::", "localhost") else bound
    return f"http://{bracketed(host)}:{known['port']}/mcp"


@dataclass(frozen=True)
class Config:
    """Every setting, one a line: `name: type = group(VARIABLE, parser, default, meaning)`."""

    # fmt: off
    data_dir: Path = places("CODEINFO_DATA_DIR", path, BASE_DIR / "data", "Folder that holds all state: database, index, Chroma, logs, keys", "`./data`")
    port: int = places("PORT", integer(1, 65535), 5010, "Port of pages, API, websocket and MCP")
    mcp_port: int = places("MCP_PORT", integer(1, 65535), lambda k: k["port"] + 1, "Port of the codebase_question endpoint", "`PORT` + 1")
    agents_mcp_port: int = places("AGENTS_MCP_PORT", integer(1, 65535), lambda k: k["port"] + 2, "Port of the agents endpoint", "`PORT` + 2")
    database_url: str = places("DATABASE_URL", database_url, "", "Database; SQLite in the data folder when unset. MONGO_URI is an alias")
    redis_url: str = places("REDIS_URL", text, "", "Redis for the channel layer; in memory when unset")
    chroma_url: str = places("CHROMA_URL", chroma_url, "", "Chroma server (host:port or URL); embedded in the data folder when unset")
    chroma: str = places("CODEINFO_CHROMA", choice("follow", "off"), lambda k: "follow" if find_spec("chromadb") else "off", "follow: Chroma gets every vector after it is published, for CODEINFO_RETRIEVAL_MODE=vector and for other Chroma clients; off: it is not used", "follow where chromadb is installed")
    celery_broker_url: str = places("CELERY_BROKER_URL", text, "", "Celery's broker: its workers ingest then, not this process")
    disk_reserve_mb: int = places("CODEINFO_DISK_RESERVE_MB", integer(0, 1 << 20), 200, "Megabytes that an ingest leaves free on the disk of the data folder: with less it ends in error")
    idle_stop_seconds: int = places("CODEINFO_IDLE_STOP_SECONDS", integer(0, 1 << 31), 0, "Seconds without use after which the server stops. 0: never. A server that the codeinfo command starts in the background has 900, unless this is set")
    agents_home: Path = places("CODEINFO_AGENTS_HOME", path, BASE_DIR / "agents", "Folder that holds one folder for each agent. CODEINFO_CODEX_AGENT_HOME is an alias", "`./agents`")

    bind: str = access("CODEINFO_BIND", text, "127.0.0.1", "Address to listen on; any other than loopback needs a login")
    allowed_hosts: tuple[str, ...] = access("CODEINFO_ALLOWED_HOSTS", words, (), "Further Host names that are served, comma separated")
    allowed_origins: tuple[str, ...] = access("CODEINFO_ALLOWED_ORIGINS", words, (), "Further web origins that may call the API, comma separated")
    require_login: bool = access("CODEINFO_REQUIRE_LOGIN", boolean, False, "Pages and sockets need a Django login")
    api_token: str = access("CODEINFO_API_TOKEN", text, "", "Bearer token that the API asks for; where a login is required off loopback, the first start makes one")
    mcp_token: str = access("CODEINFO_MCP_TOKEN", text, "", "Bearer token that the MCP endpoints ask for; as CODEINFO_API_TOKEN")
    allow_open_access: bool = access("CODEINFO_ALLOW_OPEN_ACCESS", boolean, False, "Serve off loopback without login and tokens")
    loopback_users: str = access("CODEINFO_LOOPBACK_USERS", choice("own", "any"), "own", "Whose connections from this machine are served: own: those of the user who runs codeinfo, and root's; any: those of every local user. Linux only")
    trusted_proxies: tuple[IPNetwork, ...] = access("CODEINFO_TRUSTED_PROXIES", networks, (), "Addresses or networks of reverse proxies whose X-Forwarded-For is believed, comma separated")
    secure_cookies: bool = access("CODEINFO_SECURE_COOKIES", boolean, False, "Cookies travel over HTTPS only; for use behind a proxy with TLS")
    secure_proxy_header: str = access("CODEINFO_SECURE_PROXY_HEADER", text, "", "Header that the proxy sets to https, such as X-Forwarded-Proto; needs CODEINFO_TRUSTED_PROXIES")
    hsts_seconds: int = access("CODEINFO_HSTS_SECONDS", integer(0, 1 << 31), 0, "Seconds for which browsers are told to use HTTPS only. 0: they are not told")
    api_rate: int = access("CODEINFO_API_RATE", integer(0, 1_000_000), 600, "Requests to the API and calls of MCP tools a minute, for each token, session or address. 0: no limit")
    chat_rate: int = access("CODEINFO_CHAT_RATE", integer(0, 1_000_000), 60, "Chat messages a minute, for each token, session or address. 0: no limit")
    secret_key: str = access("CODEINFO_SECRET_KEY", text, "", "Django secret key, which also encrypts keys saved on pages; kept in the data folder when unset")
    debug: bool = access("CODEINFO_DEBUG", boolean, False, "Django debug pages; never for others to reach")

    in_container: bool = ingest("CODEINFO_IN_CONTAINER", boolean, False, "Set by the container image")
    ingest_base: tuple[Path, ...] = ingest("CODEINFO_INGEST_BASE", paths, lambda k: (Path("/data"),) if k["in_container"] else (), "Folders beneath which may be ingested, comma separated", "home folder, checkout and folders that `codeinfo ingest` was allowed; `/data` in a container")
    first_root: str = ingest("CODEINFO_FIRST_ROOT", text, str(BASE_DIR), "Folder that the first start ingests; none: nothing", "the checkout")
    host_ingest_dir: str = ingest("HOST_INGEST_DIR", text, "", "Folder of the host that is mounted at /data; rewrites paths on output")
    editor: str = ingest("CODEINFO_EDITOR", editor, "vscode", "Where \"Open in editor\" leads: vscode, cursor, none, or a URL with {path} and {line}")
    trusted_folders: tuple[Path, ...] = ingest("CODEINFO_TRUSTED_FOLDERS", paths, lambda k: (Path("/data"),) if k["in_container"] else (), "Folders whose git repositories may belong to another user, comma separated", "none; `/data` in a container")
    sudo_uid: int = ingest("SUDO_UID", integer(0, 1 << 32), -1, "Set by sudo: the user who called it, whose git repositories are read too where root runs codeinfo", "none")
    ingest_collection: str = ingest("INGEST_COLLECTION", text, "ingest_vectors", "Prefix of the Chroma collections, one per root or per group of roots with equal files")
    ingest_roots_collection: str = ingest("INGEST_ROOTS_COLLECTION", text, "ingest_roots", "Accepted and ignored: roots live in the database")
    ingest_include: tuple[str, ...] = ingest("INGEST_INCLUDE", words, (), "Extensions and whole names to ingest; replaces the built-in list")
    ingest_exclude: tuple[str, ...] = ingest("INGEST_EXCLUDE", words, (), "Names, folders and *suffix patterns to leave out; added to the built-in list")
    ingest_max_file_bytes: int = ingest("INGEST_MAX_FILE_BYTES", integer(1, 1 << 30), 1_000_000, "Larger files are skipped")
    ingest_untracked: bool = ingest("CODEINFO_INGEST_UNTRACKED", boolean, True, "Whether files that git neither tracks nor ignores are ingested")
    ingest_nested: bool = ingest("CODEINFO_INGEST_NESTED", boolean, True, "Whether submodules and clones below a folder are ingested with it")
    git_config: Path = ingest("GIT_CONFIG_GLOBAL", path, Path(os.path.expanduser("~/.gitconfig")), "Your git configuration. What its core.excludesFile names is left out; the rest is not used", "`~/.gitconfig`")
    xdg_config_home: Path = ingest("XDG_CONFIG_HOME", path, Path(os.path.expanduser("~/.config")), "Folder of `git/config`, read before GIT_CONFIG_GLOBAL, and of `git/ignore`, which applies where neither names a file", "`~/.config`")
    clone_hosts: tuple[str, ...] = ingest("CODEINFO_CLONE_HOSTS", words, (), "Hosts whose repositories clients of /mcp may have cloned, and which may have private addresses, comma separated", "none")
    clone_token: tuple[tuple[str, str], ...] = ingest("CODEINFO_CLONE_TOKEN", pairs, (), "Tokens for private repositories over HTTPS, such as `github.com=TOKEN`, `github.com=user:TOKEN` or `git.example:8443=TOKEN`, comma separated", "none: the helper of your git configuration is asked")
    clone_hours: int = ingest("CODEINFO_CLONE_HOURS", integer(0, 8760), 0, "Hours after which a cloned repository is fetched again; 0: when you or a webhook ask for it")
    ingest_flush_every: int = ingest("INGEST_FLUSH_EVERY", clamped(1, 500), 20, "Least number of files in one write to the stores, which also has at least 1,000 chunks (1-500)")
    ingest_token_margin: float = ingest("INGEST_TOKEN_MARGIN", fraction, 0.85, "Share of an embedder's token limit that a chunk may fill")
    ingest_fallback_tokens: int = ingest("INGEST_FALLBACK_TOKENS", integer(16, 1_000_000), 2048, "Token limit taken for a server that does not tell its own")
    watch: str = ingest("CODEINFO_WATCH", choice("auto", "poll", "off"), "auto", "How changes of ingested folders are found, which are then ingested by themselves: auto: the kernel tells, or where it does not, they are looked for; poll: they are looked for; off: not at all")
    fresh_wait_ms: int = ingest("CODEINFO_FRESH_WAIT_MS", integer(0, 10_000), 300, "How long a search waits for the ingest of changes that are known, in milliseconds")
    ingest_repair: str = ingest("CODEINFO_INGEST_REPAIR", choice("auto", "ask"), "auto", "auto: a folder whose vectors are lost or broken is ingested again by itself; ask: when somebody asks for it on the Ingest page")

    embedding_base_url: str = embedding("CODEINFO_EMBEDDING_BASE_URL", http_url, "", "OpenAI-compatible server for embeddings (falls back on CODEINFO_OPENAI_BASE_URL)")
    embedding_api_key: str = embedding("CODEINFO_EMBEDDING_API_KEY", text, "", "Its key (falls back on CODEINFO_OPENAI_API_KEY)")
    embedding_batch: int = embedding("CODEINFO_EMBEDDING_BATCH", integer(1, 2048), 32, "Texts per request to the embedding server")
    embedding_cache_mb: int = embedding("CODEINFO_EMBEDDING_CACHE_MB", integer(0, 1 << 20), 512, "Megabytes of disk for the vectors that embedding servers gave, so that no text is sent twice. 0: none")

    retrieval_mode: str = retrieval("CODEINFO_RETRIEVAL_MODE", choice("hybrid", "vector"), "hybrid", "hybrid: words and vectors together; vector: vectors alone, in the order of their distance")
    search_processes: int = retrieval("CODEINFO_SEARCH_PROCESSES", integer(0, 64), lambda k: min(8, (os.cpu_count() or 1) - 1), "Processes for searches that come while another runs, started when needed. 0: none", "one less than there are cores, at most 8")
    retrieval_cutoff: float = retrieval("CODEINFO_RETRIEVAL_DISTANCE_CUTOFF", NumberOr(DEFAULT_CUTOFF, lambda n: n >= 0), DEFAULT_CUTOFF, "Matches beyond this distance (squared L2 of unit vectors: 2 - 2 cos) are dropped, unless their words are evidence. Below 1.4, words are evidence up to .3 beyond it")
    retrieval_cutoff_disabled: bool = retrieval("CODEINFO_RETRIEVAL_CUTOFF_DISABLED", TrueOrNot(), False, "true keeps every match")
    retrieval_fallback_chunks: int = retrieval("CODEINFO_RETRIEVAL_FALLBACK_CHUNKS", NumberOr(2, lambda n: n >= 1, whole=True), 2, "Number of matches returned as weak if none passes the cutoff")
    tool_max_chars: int = retrieval("CODEINFO_TOOL_MAX_CHARS", NumberOr(40_000, lambda n: n >= 1, whole=True), 40_000, "Characters of one tool's output as JSON. Over HTTP: characters of chunk text in one search answer")
    tool_chunk_max_chars: int = retrieval("CODEINFO_TOOL_CHUNK_MAX_CHARS", NumberOr(5_000, lambda n: n >= 1, whole=True), 5_000, "Characters of one chunk in a search answer")

    chat_provider: str = chat("CODEINFO_CHAT_PROVIDER", choice(*PROVIDERS), "", "Provider that pages preselect (first available when unset)")
    mcp_provider: str = chat("CODEINFO_MCP_PROVIDER", choice(*PROVIDERS), "", "Provider that answers codebase_question when a call names none (the first available when unset); while a set one is away that endpoint is unavailable")
    mcp_ingest: bool = chat("CODEINFO_MCP_INGEST", boolean, False, "Whether clients of /mcp may ingest folders beneath CODEINFO_INGEST_BASE (the tool index_repository)")
    mcp_workspace: str = chat("CODEINFO_MCP_WORKSPACE", choice("auto", "ask", "off"), "auto", "Whether calls over `codeinfo mcp` without `repository` mean the folder that the client works in: auto: yes, and it is ingested at the first call; ask: it is ingested when the user agrees; off: no")
    mcp_legacy_names: bool = chat("CODEINFO_MCP_LEGACY_NAMES", boolean, False, "Whether the MCP endpoints are named codeinfo2-mcp and codeinfo2-agents-mcp in serverInfo, as in codeinfo2")
    openai_base_url: str = chat("CODEINFO_OPENAI_BASE_URL", http_url, "", "Any OpenAI-compatible server, with its /v1. It comes before the one saved on the Providers page")
    openai_api_key: str = chat("CODEINFO_OPENAI_API_KEY", text, "", "Its key, for CODEINFO_OPENAI_BASE_URL only")
    openai_context: int = chat("CODEINFO_OPENAI_CONTEXT_CHARS", integer(1_000, 10_000_000), 200_000, "Characters of history and tool results sent to the server; older turns are left out first")
    lmstudio_base_url: str = chat("LMSTUDIO_BASE_URL", address, lambda k: "http://host.docker.internal:1234" if k["in_container"] else "http://127.0.0.1:1234", "LM Studio's server. While it is set, pages cannot change the address", "`http://127.0.0.1:1234`; `http://host.docker.internal:1234` in a container")
    lmstudio_api_token: str = chat("CODEINFO_LMSTUDIO_API_TOKEN", lmstudio_token, "", "Its API token (sk-lm-…), where it requires authentication. It comes before the one saved on the LM Studio page")
    mcp_lmstudio_model: str = chat("MCP_LMSTUDIO_MODEL", text, "", "LM Studio's model for codebase_question where a call names none (the first that it offers). LMSTUDIO_DEFAULT_MODEL is an alias")

    codex_home: Path = codex("CODEINFO_CODEX_HOME", path, _in_data("codex"), "Codex' settings, credentials and threads", "`codex` in the data folder")
    codex_workdir: Path = codex("CODEINFO_CODEX_WORKDIR", path, _in_data("codex", "work"), "Where Codex gets a new, empty working folder for each answer. CODEX_WORKDIR is an alias, which comes first", "`codex/work` in the data folder")
    host_codex_home: Path = codex("CODEINFO_HOST_CODEX_HOME", path, Path(os.path.expanduser("~/.codex")), "Where a login of Codex is copied from if its home has none", "`~/.codex`")
    mcp_url: str = codex("MCP_URL", http_url, _own_mcp, "Our own /mcp as Codex reaches it", "on `PORT` of this machine")
    mcp_force_codex: str = codex("MCP_FORCE_CODEX_AVAILABLE", choice("true", "false"), "", "false: Codex is never started and counts as unavailable; true: codebase_question does not ask whether it is available")
    mcp_codex_model: str = codex("CODEINFO_MCP_CODEX_MODEL", text, "", "Codex' model for codebase_question (the first that it offers)")
    mcp_codex_effort: str = codex("CODEINFO_MCP_CODEX_EFFORT", choice("low", "medium", "high", "xhigh", "max", "ultra"), "high", "Its reasoning effort there")
    mcp_codex_network: bool = codex("CODEINFO_MCP_CODEX_NETWORK", boolean, False, "Whether it may use the network there")
    mcp_codex_web_search: bool = codex("CODEINFO_MCP_CODEX_WEB_SEARCH", boolean, False, "Whether it may search the web there")

    first_byte_seconds: float = limits("CODEINFO_PROVIDER_FIRST_BYTE_SECONDS", float, 60.0, "Time a provider has to begin its answer")
    idle_seconds: float = limits("CODEINFO_PROVIDER_IDLE_SECONDS", float, 120.0, "Silence after which an answer is given up")
    max_tool_rounds: int = limits("CODEINFO_MAX_TOOL_ROUNDS", integer(1, 100), 12, "Rounds of tool calls in one answer")
    max_answer_seconds: float = limits("CODEINFO_MAX_ANSWER_SECONDS", float, 900.0, "Seconds that one answer may take in all")

    log_level: str = logs("LOG_LEVEL", choice("error", "warn", "info", "debug"), "info", "Least level that is logged")
    log_file_path: Path = logs("LOG_FILE_PATH", path, _in_data("logs", "server.log"), "Log file", "`logs/server.log` in the data folder")
    log_file_rotate: bool = logs("LOG_FILE_ROTATE", boolean, True, "A new log file each day")
    log_buffer_max: int = logs("LOG_BUFFER_MAX", integer(1, 1_000_000), 5_000, "Entries that the Logs page and GET /logs can look back at")
    log_max_client_bytes: int = logs("LOG_MAX_CLIENT_BYTES", integer(1, 1 << 20), 32_768, "Largest body of POST /chat and POST /logs")
    log_progress_ms: int = logs("LOG_INGEST_WS_THROTTLE_MS", integer(0, 3_600_000), 10_000, "Least time between two progress lines of an ingest, in milliseconds")
    client_log: bool = logs("VITE_LOG_FORWARD_ENABLED", boolean, True, "Pages send their errors to the log")
    client_log_bytes: int = logs("VITE_LOG_MAX_BYTES", integer(1, 1 << 20), 32_768, "Larger entries of pages are left out")

    otel_endpoint: str = traces("OTEL_EXPORTER_OTLP_ENDPOINT", http_url, "", "Where traces go: the address of an OTLP receiver, without /v1/traces; no traces when unset")
    otel_traces_endpoint: str = traces("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", http_url, "", "The same as a full address, which wins")
    otel_traces_exporter: str = traces("OTEL_TRACES_EXPORTER", choice("otlp", "none"), "otlp", "none switches traces off")
    otel_disabled: bool = traces("OTEL_SDK_DISABLED", boolean, False, "true switches traces off, too")
    otel_service_name: str = traces("OTEL_SERVICE_NAME", text, "codeinfo", "The name under which they stand")
    # fmt: on

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Config":
        """Read all settings from an environment. Raises ImproperlyConfigured, with the variable's
        name, for a wrong value."""
        known: dict[str, Any] = {}
        for item in fields(cls):
            known[item.name] = _value(item.metadata, environ, known)
        if known["secure_proxy_header"] and not known["trusted_proxies"]:
            raise ImproperlyConfigured(
                "CODEINFO_SECURE_PROXY_HEADER needs CODEINFO_TRUSTED_PROXIES: "
                "everybody else could claim HTTPS"
            )
        return cls(**known)

    @property
    def shares_data(self) -> bool:
        """Whether several processes may use the data folder: servers beside one Chroma server, and
        workers of Celery. Else one has it for itself (`core.data.folder_lock`)."""
        return bool(self.chroma_url or self.celery_broker_url)


def default_bases() -> tuple[Path, ...]:
    """Return the folders beneath which may be ingested, unless CODEINFO_INGEST_BASE is set."""
    return (Path(os.path.expanduser("~")), *(() if IS_INSTALLED else (BASE_DIR,)))


# Variables with several names. The first name that is set counts.
NAMES = {
    "DATABASE_URL": ("DATABASE_URL", "MONGO_URI"),
    "CODEINFO_AGENTS_HOME": ("CODEINFO_AGENTS_HOME", "CODEINFO_CODEX_AGENT_HOME"),
    "CODEINFO_CODEX_WORKDIR": ("CODEX_WORKDIR", "CODEINFO_CODEX_WORKDIR"),
    "MCP_LMSTUDIO_MODEL": ("MCP_LMSTUDIO_MODEL", "LMSTUDIO_DEFAULT_MODEL"),
}


def variable_names() -> frozenset[str]:
    """Return the name of every variable, other names included."""
    names = (NAMES.get(env := item.metadata["env"], (env,)) for item in fields(Config))
    return frozenset(name for several in names for name in several)


def variables_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the variables that an environment sets, by their first name."""
    known = (item.metadata["env"] for item in fields(Config))
    return frozenset(env for env in known if _named_value(env, environ)[1])


def is_set(env: str) -> bool:
    """Whether the environment sets a variable, so that its value is not the default."""
    return env in getattr(settings, "VARIABLES_SET", ())


def replaced_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Describe each value in an environment that the default replaces."""
    for item in fields(Config):
        parse = item.metadata["parse"]
        name, raw = _named_value(item.metadata["env"], environ)
        if raw and isinstance(parse, NumberOr | TrueOrNot) and parse.refuses(raw):
            yield f"{name} cannot be {raw[:80]!r}: the default, {item.metadata['default']}, is used"


def _named_value(env: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name under which a variable is set, and its value; the value "" if it is unset."""
    for name in NAMES.get(env, (env,)):
        if raw := environ.get(name, "").strip():
            return name, raw
    return env, ""


def _value(meta: Mapping[str, Any], environ: Mapping[str, str], known: dict[str, Any]) -> Any:
    name, raw = _named_value(meta["env"], environ)
    if not raw:
        default = meta["default"]
        return default(known) if callable(default) else default
    try:
        return meta["parse"](raw)
    except ValueError as error:
        reason = str(error) if str(error).startswith("must") else f"cannot be {raw!r}"
        raise ImproperlyConfigured(f"{name} {reason}") from error


def config() -> Config:
    """Return the current configuration."""
    return settings.CONFIG
