"""The Celery app for ingests in separate processes (`codeinfo.celery` runs it).

Imported only if CELERY_BROKER_URL is set. A message only wakes a worker, which then reads the queue
from the database. A lost message delays a run until the next poll; an extra one does no harm.
"""

import logging

from celery import Celery
from kombu.exceptions import OperationalError

from apps.core.config import config

logger = logging.getLogger("codeinfo.ingest")

app = Celery("codeinfo", broker=config().celery_broker_url)
app.conf.update(
    # Only one run is in progress at a time, and it starts child processes.
    worker_pool="solo",
    worker_hijack_root_logger=False,
    task_ignore_result=True,
    broker_connection_timeout=2,
    broker_connection_retry_on_startup=True,
)


def send(task: str) -> None:
    """Send a task. If the broker is unavailable, log it: the next poll finds the run."""
    try:
        app.send_task(task, retry=False)
    except OperationalError as error:
        logger.warning("no worker was told: %s", type(error).__name__)
