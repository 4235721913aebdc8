"""Fetches cloned repositories again after CODEINFO_CLONE_HOURS."""

from datetime import timedelta

from django.utils import timezone

from apps.core.config import config
from apps.index.models import Clone, Root
from apps.ingest.runs.submit import queue_fetch


def queue_due() -> None:
    """Queue the fetch of each clone whose last one began long enough ago."""
    hours = config().clone_hours
    if not hours:
        return
    before = timezone.now() - timedelta(hours=hours)
    due = Clone.objects.filter(tried_at__lt=before).values_list("path", flat=True)
    for root in Root.objects.published().filter(path__in=list(due)):
        queue_fetch(root)
