"""The Celery app, for ingests in processes of their own (`codeinfo.celery` runs it).

Imported where CELERY_BROKER_URL is set and nowhere else. A message says only "look at the queue",
which is the rows: one that is lost costs a wait for the next look, one too many costs a look.
"""

import logging

from celery import Celery
from kombu.exceptions import OperationalError

from apps.core.config import config

logger = logging.getLogger("codeinfo.ingest")

app = Celery("codeinfo", broker=config().celery_broker_url)
app.conf.update(
    # In the main process: a run starts processes of its own, and there is one run at a time.
    worker_pool="solo",
    worker_hijack_root_logger=False,
    task_ignore_result=True,
    broker_connection_timeout=2,
    broker_connection_retry_on_startup=True,
)


def send(task: str) -> None:
    """Ask for a task now. A broker that is away is logged: the next look finds the row."""
    try:
        app.send_task(task, retry=False)
    except OperationalError as error:
        logger.warning("no worker was told: %s", type(error).__name__)
