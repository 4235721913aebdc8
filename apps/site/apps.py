import logging

from django.apps import AppConfig
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from apps.core.security import private_files

logger = logging.getLogger("codeinfo.site")


class SiteConfig(AppConfig):
    name = "apps.site"

    def ready(self) -> None:
        """Register the errors of all apps, log the wrong values of the configuration, and make
        the files private, before a command or the server uses them."""
        autodiscover_modules("errors")
        for problem in settings.CONFIG_WARNINGS:
            logger.warning(problem)
        for file in private_files.repair(settings.CONFIG.data_dir, private_files.files_elsewhere()):
            logger.warning("others may read %s: %s", file.path.name, file.reason)
