"""The first start of a data folder: creates an administrator, and ingests a first repository."""

import logging
import secrets
from pathlib import Path

from django.contrib.auth import get_user_model

from apps.core.config import BASE_DIR, Config
from apps.core.errors import CodeinfoError
from apps.core.system import posix
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.endings import INTERRUPTED
from apps.index.models import IngestRun, Root
from apps.ingest import folders, services

logger = logging.getLogger("codeinfo.site")


def ensure_admin(data_dir: Path) -> str | None:
    """Create the user `admin` with a random password, if there is no user. Return the password, or
    None.

    The password is also in `admin-password.txt` in the data folder, which only its owner can read.
    """
    users = get_user_model()
    if users.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    file = data_dir / "admin-password.txt"
    posix.replace_file(file, f"{password}\n".encode())
    users.objects.create_superuser("admin", password=password)
    return password


def ensure_first_root(config: Config) -> IngestRun | None:
    """Queue the ingest of CODEINFO_FIRST_ROOT, if nothing was ever ingested.

    An interrupted ingest of it does not count, so it is repeated; a cancelled one counts.
    """
    first_root = folders.first_root(config)
    if not first_root or Root.objects.published().filter(awaited_files=None).exists():
        return None
    folder = Path(first_root)
    cut_off = {
        "path": str(folder),
        "operation": IngestRun.Operation.START,
        "dry_run": False,
        "state": INTERRUPTED.state,
        "last_error": INTERRUPTED.last_error,
        "cancel_requested": False,
    }
    if IngestRun.objects.exclude(**cut_off).exists():
        return None
    try:
        return services.start_run(
            path=str(folder),
            name="codeinfo" if folder == BASE_DIR else folder.name,
            model=DEFAULT_MODEL,
            description=f"First repository, ingested from {folder}",
        )
    except CodeinfoError as error:
        # The server starts without it.
        logger.warning("first root not ingested: %s %s", error.code, error.message)
        return None
