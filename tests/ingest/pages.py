"""Rows that the ingest page shows, and the header of what htmx asks for."""

from apps.embedding.static import MODEL_ID
from apps.index.models import IngestRun, Root

HTMX = {"HX-Request": "true"}


def make_run(**fields: object) -> IngestRun:
    own = {"operation": "start", "path": "/code/redis", "name": "redis", "model": MODEL_ID}
    return IngestRun.objects.create(**own | fields)


def make_root(name: str = "httpx", **fields: object) -> Root:
    own = {"path": f"/code/{name}", "model": MODEL_ID, "generation": 1}
    return Root.objects.create(name=name, **own | fields)
