"""The Celery app of a worker: `celery -A codeinfo.celery worker -B`."""

import faulthandler
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")  # Celery sets Django up
if sys.__stderr__ is not None and not faulthandler.is_enabled():
    faulthandler.enable(sys.__stderr__)

from apps.core.concurrency.celery import app
from apps.index.scrubbed import DAY_SECONDS

POLL_SECONDS = 30.0

app.conf.beat_schedule = {
    "look": {"task": "apps.ingest.tasks.work", "schedule": POLL_SECONDS},
    "compare": {"task": "apps.ingest.tasks.compare", "schedule": DAY_SECONDS},
}
app.conf.imports = ("apps.site.notices",)
app.autodiscover_tasks(["apps.ingest"])

__all__ = ["app"]
