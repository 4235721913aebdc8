"""The room of the index and its truth: rows, vectors, words."""

from django.apps import AppConfig


class IndexConfig(AppConfig):
    name = "apps.index"
    # Its tables and migrations were made under this label, before the room had its name.
    label = "ingest"
    verbose_name = "Index"
