"""Django's settings for the tests: the product's own, read from an environment of their own.

pytest-django reads settings before any conftest is imported, so this is the one place that is early
enough: each worker process has its own state, and no provider, key or folder of the machine's own
leaks in.
"""

import os
import tempfile
from dataclasses import fields
from pathlib import Path

from codeinfo.conf import Knobs

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
FOLDER = Path(tempfile.mkdtemp(prefix=f"codeinfo-test-{WORKER}-"))
for _field in fields(Knobs):
    os.environ.pop(_field.metadata["env"], None)
os.environ["CODEINFO_DATA_DIR"] = str(FOLDER)
os.environ["CODEINFO_INGEST_BASE"] = f"{tempfile.gettempdir()},{Path(__file__).parent.parent}"
os.environ["CODEINFO_FIRST_ROOT"] = "none"
# Processes that tests start are the product, not a test.
os.environ["DJANGO_SETTINGS_MODULE"] = "codeinfo.settings"

from codeinfo.settings import *  # noqa: E402, F403
