"""Django's settings for the tests: the product's own, read from an environment of their own.

pytest-django reads settings before any conftest is imported, so this is the one place that is early
enough: each worker process has its own state, and no provider, key or folder of the machine's own
leaks in.
"""

import os
import tempfile
from pathlib import Path

from apps.core.config import variable_names

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
FOLDER = Path(tempfile.mkdtemp(prefix=f"codeinfo-test-{WORKER}-"))
for _name in variable_names():
    os.environ.pop(_name, None)
# `python -m tests.stores` names other stores than the defaults.
for _name in ("DATABASE_URL", "REDIS_URL", "CHROMA_URL"):
    os.environ[_name] = os.environ.get(f"TEST_{_name}", "")
os.environ["CODEINFO_DATA_DIR"] = str(FOLDER)
os.environ["CODEINFO_INGEST_BASE"] = f"{tempfile.gettempdir()},{Path(__file__).parent.parent}"
# Nor do files that the user of this machine has git ignore.
os.environ["GIT_CONFIG_GLOBAL"] = str(FOLDER / "no-gitconfig")
os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "no-config")
# Nor the certificates of all authorities, which take a client of HTTP 30 ms to read: no test asks
# the world.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(FOLDER / "no-certificates")
# Tests of Chroma say so: its process takes a second to start.
os.environ["CODEINFO_CHROMA"] = "off"
os.environ["CODEINFO_FIRST_ROOT"] = "none"
# Tests of search processes start them themselves.
os.environ["CODEINFO_SEARCH_PROCESSES"] = "0"
# An embedding server is asked for what a test has it embed, whatever was embedded before.
os.environ["CODEINFO_EMBEDDING_CACHE_MB"] = "0"
# Nothing listens there, whatever runs on this machine.
os.environ["LMSTUDIO_BASE_URL"] = "http://127.0.0.1:9"
# Codex takes a second to start, and no login of this machine is copied; tests that want it say so.
os.environ["MCP_FORCE_CODEX_AVAILABLE"] = "false"
os.environ["CODEINFO_HOST_CODEX_HOME"] = str(FOLDER / "no-codex")
# Processes that tests start are the product, not a test.
os.environ["DJANGO_SETTINGS_MODULE"] = "codeinfo.settings"

from codeinfo.settings import *  # noqa: E402, F403
from codeinfo.settings import DATABASES, LOGGING  # noqa: E402

# Values of the tests are defaults; a test that wants one to be set says so.
VARIABLES_SET: frozenset[str] = frozenset()

# What these tests commit need not survive a loss of power: each commit would wait for the disk.
if "init_command" in (_options := DATABASES["default"].get("OPTIONS", {})):
    _options["init_command"] = _options["init_command"].replace("=FULL", "=OFF")
    DATABASES["default"]["TEST"] = {"NAME": str(FOLDER / "test.sqlite3")}

# On standard error the expected complaints would drown the real ones.
LOGGING["root"]["handlers"] = ["store"]

# Django's own is slow on purpose: half a second for each user that a test makes or logs in.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
