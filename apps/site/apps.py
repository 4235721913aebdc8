import logging
from pathlib import Path

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import pre_migrate

from apps.core.security import private_files

logger = logging.getLogger("codeinfo.site")


class SiteConfig(AppConfig):
    name = "apps.site"

    def ready(self) -> None:
        """Log the wrong values of the configuration, and make the files private, before a
        command or the server uses them."""
        for problem in settings.CONFIG_WARNINGS:
            logger.warning(problem)
        for each in private_files.repair(settings.CONFIG.data_dir, elsewhere()):
            logger.warning("others may read %s: %s", each.path.name, each.reason)
        # Sent for each app: once is enough.
        pre_migrate.connect(_check_schema, sender=apps.get_app_config("index"))


def _check_schema(**signal: object) -> None:
    """Migrate no database that this version cannot read. Raises as `schema.check`."""
    from apps.site import schema  # noqa: PLC0415 (it needs the models)

    schema.check()


def elsewhere() -> list[Path]:
    """Return the files of codeinfo that may be outside the data folder."""
    database = settings.DATABASES["default"]
    of_sqlite = str(database["ENGINE"]).endswith("sqlite3")
    return private_files.files_elsewhere(
        settings.CONFIG, str(database["NAME"]) if of_sqlite else ""
    )
