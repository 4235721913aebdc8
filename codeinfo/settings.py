"""Django settings. Only this module reads the environment; `apps.core.config` defines codeinfo's
variables."""

import os
import re
import secrets
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Chroma reads this variable; a blank value crashes its import.
os.environ["ANONYMIZED_TELEMETRY"] = "False"
# The matrices of a search are too small for several threads. numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import environ
from django.core.exceptions import ImproperlyConfigured

from apps.core.config import BASE_DIR, Config, replaced_values, variables_in
from apps.core.security import private_files
from apps.core.security.authentication import LOOPBACK, TOKEN_FILE, allowed_hosts
from apps.core.system import command_lines, posix, start_errors

# Files that this process, and the programs that it starts, create are private.
os.umask(private_files.OTHERS)
environ.Env.read_env(BASE_DIR / ".env")
CONFIG = Config.read(os.environ)
# Which settings are not defaults: on pages, these cannot be changed.
VARIABLES_SET = variables_in(os.environ)
# Logged by apps.site, as logging is not configured yet.
CONFIG_WARNINGS = tuple(replaced_values(os.environ))
DATA_DIR = CONFIG.data_dir.absolute()
# What each process creates that is not there. A restore that is refused leaves none of it.
CREATED = tuple(
    path for path in (DATA_DIR / "secret.key", DATA_DIR / "logs", DATA_DIR) if not path.exists()
)


def persistent_secret(path: Path) -> str:
    """Return the secret in a file, which is created with a random one if it is missing. Only its
    owner can read it. Raises ImproperlyConfigured."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            with posix.locked_folder(path.parent):
                if not os.path.lexists(path):  # another process may have made it
                    posix.replace_file(path, secrets.token_urlsafe(48).encode())
    except FileExistsError:
        if not path.parent.is_dir():
            raise ImproperlyConfigured(start_errors.data_folder_problem(path.parent)) from None
    except OSError as error:
        problem = start_errors.data_folder_problem(path.parent)
        raise ImproperlyConfigured(
            problem or f"CODEINFO_DATA_DIR cannot be written: {error}"
        ) from error
    try:
        return start_errors.check_secret(path, path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(start_errors.secret_problem(path, error)) from error


def with_tokens(config: Config) -> Config:
    """Return the settings with a token in place of those that are not set, if a login is required
    and other machines can connect. Raises ImproperlyConfigured."""
    if not config.require_login or config.bind in LOOPBACK:
        return config
    if config.api_token and config.mcp_token:
        return config
    token = persistent_secret(DATA_DIR / TOKEN_FILE)
    return replace(config, api_token=config.api_token or token, mcp_token=config.mcp_token or token)


CONFIG = with_tokens(CONFIG)
SECRET_KEY = CONFIG.secret_key or persistent_secret(DATA_DIR / "secret.key")
DEBUG = CONFIG.debug
ALLOWED_HOSTS = allowed_hosts(CONFIG)
CSRF_TRUSTED_ORIGINS = list(CONFIG.allowed_origins)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "apps.core.http.rest_framework.JsonRestFramework",
    "drf_spectacular",
    # The scripts and styles of /api/docs: the extra "pages".
    *(name for name in ("drf_spectacular_sidecar",) if find_spec(name)),
    "channels",
    "django_htmx",
    "csp",
    "apps.logs",
    "apps.servers",
    "apps.lmstudio",
    "apps.index",
    "apps.ingest",
    "apps.retrieval",
    "apps.tools",
    "apps.browse",
    "apps.conversations",
    "apps.agent_runs",
    "apps.mcp",
    "apps.site",
]

MIDDLEWARE = [
    "apps.logs.middleware.RequestLogMiddleware",
    "apps.core.monitoring.tracing.TraceMiddleware",
    "apps.core.http.pages.Compression",
    "apps.core.http.pages.Security",
    "apps.core.http.pages.Session",
    "apps.core.http.pages.Authentication",
    "apps.core.security.access.AccessMiddleware",
    "apps.core.http.pages.ContentPolicy",
    "apps.core.http.pages.Common",
    "apps.core.http.pages.Csrf",
    "apps.core.http.pages.Messages",
    "apps.core.http.pages.XFrameOptions",
    "apps.core.http.pages.Htmx",
]

# Checks of middleware, which apps.core.http.pages wraps.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]
# The same for `check --deploy`. HSTS for subdomains and preloading are the domain owner's choice.
SILENCED_SYSTEM_CHECKS += ["security.W001", "security.W002", "security.W003"]
SILENCED_SYSTEM_CHECKS += ["security.W005", "security.W021"]

ROOT_URLCONF = "codeinfo.urls"
ASGI_APPLICATION = "codeinfo.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.site.context.shell",
            ],
        },
    },
]


def database(url: str) -> dict[str, object]:
    """Return Django's settings for a DATABASE_URL; empty: SQLite in the data folder."""
    if url.startswith("mongodb"):
        return mongodb(url)
    if not url or url.startswith("sqlite:"):
        # db_url_config would interpret `#`, `?`, `%`, `+` and tabs in a path.
        name = sqlite_file(url) if url else str(DATA_DIR / "codeinfo.sqlite3")
        config: dict[str, object] = {"ENGINE": "apps.core.data.sqlite3", "NAME": name}
    else:
        config = environ.Env.db_url_config(url)
    if str(config["ENGINE"]).endswith("sqlite3"):
        # IMMEDIATE: a transaction takes the write lock at its start, so that it waits for another
        # writer instead of failing later.
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 10,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        }
        # Opening the database takes longer than most queries. A file that was removed or restored
        # is noticed after this time.
        config["CONN_MAX_AGE"] = 5
    if str(config["ENGINE"]).endswith("postgresql"):
        config["ENGINE"] = "apps.core.data.postgres"
    return config


def mongodb(url: str) -> dict[str, object]:
    """Return Django's settings for a mongodb:// URL.

    pymongo waits 30 s for a server that is away, and without end for one that does not answer.
    Options of the URL come first. Raises ImproperlyConfigured.
    """
    if find_spec("django_mongodb_backend") is None:
        raise ImproperlyConfigured(
            "DATABASE_URL names MongoDB, whose driver is not installed: "
            + command_lines.install_extra("mongodb")
        )
    parts = urlsplit(url)
    known = parts.query.lower()
    waits = {"serverSelectionTimeoutMS": 2_000, "socketTimeoutMS": 30_000}
    return {
        "ENGINE": "apps.core.data.mongodb",
        "HOST": url,
        "NAME": parts.path.strip("/") or "codeinfo",
        "OPTIONS": {name: ms for name, ms in waits.items() if f"{name.lower()}=" not in known},
    }


def sqlite_file(url: str) -> str:
    """Return the file of `sqlite:///relative/path` or `sqlite:////absolute/path`.

    `%23` is `#`, as in any URL. Raises ImproperlyConfigured for characters that end the path of a
    URL or are dropped from it.
    """
    if re.search(r"[#?\t\r\n]", url):
        raise ImproperlyConfigured(
            "DATABASE_URL of SQLite names a file and nothing else: write # as %23, ? as %3F and a "
            "tab as %09"
        )
    parts = urlsplit(url if url != "sqlite://:memory:" else "sqlite://")
    if parts.netloc:
        raise ImproperlyConfigured(
            "DATABASE_URL of SQLite needs three slashes before a relative path and four before an "
            "absolute one, as in sqlite:////data/codeinfo.sqlite3"
        )
    return unquote(parts.path[1:]) or ":memory:"


DATABASES = {"default": database(CONFIG.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
if CONFIG.database_url.startswith("mongodb"):
    # Keys are ObjectIds there, those of Django's own apps too.
    DEFAULT_AUTO_FIELD = "django_mongodb_backend.fields.ObjectIdAutoField"
    MONGODB = {
        "django.contrib.admin": "apps.core.data.mongodb.apps.MongoAdminConfig",
        "django.contrib.auth": "apps.core.data.mongodb.apps.MongoAuthConfig",
        "django.contrib.contenttypes": "apps.core.data.mongodb.apps.MongoContentTypesConfig",
    }
    MIGRATION_MODULES = {
        app.rpartition(".")[2]: f"apps.core.data.mongodb.migrations.{app.rpartition('.')[2]}"
        for app in MONGODB
    }
    INSTALLED_APPS = [MONGODB.get(app, app) for app in INSTALLED_APPS]

CACHES = {
    "default": {
        # Per process, for apps/core/security/rate_limits.py.
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

CHANNEL_LAYERS: dict[str, object] = {
    "default": {
        # Unlike channels_redis.core, it loses no message to a slow reader, and groups do not
        # expire.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CONFIG.redis_url]},
    }
    if CONFIG.redis_url
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "apps.core.http.static_files.HashedNames"},
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "codeinfo.formats"

LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_SAMESITE = "Lax"
# Behind a proxy with TLS (docs/operations.md). TrustedProxies keeps the header from all others.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.secure_cookies
SECURE_HSTS_SECONDS = CONFIG.hsts_seconds
if CONFIG.secure_proxy_header:
    name = CONFIG.secure_proxy_header.upper().replace("-", "_")
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{name}", "https")
    SECURE_SSL_REDIRECT = CONFIG.secure_cookies
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DEFAULT_EXCEPTION_REPORTER_FILTER = "apps.logs.debug_pages.SecretFilter"
CSRF_FAILURE_VIEW = "apps.site.failures.csrf_failure"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'"],
        "script-src": ["'self'"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.http.parsers.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.core.http.parsers.JSONOnly",
    # apps.core.security.access checks requests before they reach a view.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "apps.core.error_map.drf_exception_handler",
    "DEFAULT_SCHEMA_CLASS": "apps.site.openapi.document.BodiesOnly",
}

# apps.site.openapi describes the routes.
SPECTACULAR_SETTINGS = {
    "TITLE": "codeinfo",
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": ["apps.site.openapi.document.describe"],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}

LEVEL = {"warn": "WARNING"}.get(CONFIG.log_level, CONFIG.log_level.upper())
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"bugs": {"()": "apps.logs.filters.BugFilter"}},
    "formatters": {"console": {"()": "apps.logs.formatting.ConsoleFormatter"}},
    "handlers": {
        # Numbers the entries, buffers the latest ones, and writes the log file.
        "store": {"()": "apps.logs.store.handler", "config": CONFIG},
        "stderr": {
            "class": "logging.StreamHandler",
            "level": "WARNING",
            "formatter": "console",
        },
    },
    "root": {"handlers": ["store", "stderr"], "level": "WARNING"},
    "loggers": {
        "codeinfo": {"level": LEVEL},
        # A 4xx is an answer, not an event.
        "django.request": {"level": "ERROR", "filters": ["bugs"]},
    },
}
