import logging
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings

from apps.core.security import private_files

logger = logging.getLogger("codeinfo.site")


class SiteConfig(AppConfig):
    name = "apps.site"

    def ready(self) -> None:
        """Log the wrong values of the configuration, and make the files private, before a
        command or the server uses them."""
        for problem in settings.CONFIG_WARNINGS:
            logger.warning(problem)
        for file in private_files.repair(settings.CONFIG.data_dir, elsewhere()):
            logger.warning("others may read %s: %s", file.path.name, file.reason)


def elsewhere() -> list[Path]:
    """Return the files of codeinfo that may be outside the data folder."""
    database = settings.DATABASES["default"]
    of_sqlite = str(database["ENGINE"]).endswith("sqlite3")
    return private_files.files_elsewhere(
        settings.CONFIG, str(database["NAME"]) if of_sqlite else ""
    )
