"""The pages above all apps."""

from datetime import timedelta

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.ingest import queries
from apps.ingest.models import Root
from apps.site import health, overview
from codeinfo.conf import knobs


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Versions, repositories and storage; what is connected is asked by the page itself."""
    roots, storage = _stored()
    versions = overview.versions()
    return render(
        request,
        "site/home.html",
        {
            "roots": roots,
            "storage": storage,
            "versions": versions,
            "report": overview.report({**versions, **storage}),
            "uptime": timedelta(seconds=health.uptime_seconds()),
            "data_dir": knobs().data_dir,
        },
    )


def _stored() -> tuple[list[Root] | None, dict[str, str]]:
    """Repositories and storage facts; None and nothing while the database is away."""
    try:
        return queries.published_roots(), overview.storage()
    except DatabaseError:
        return None, {}


@require_GET
async def connected(request: HttpRequest) -> HttpResponse:
    """Fragment: the list "What is connected", asked anew."""
    return render(request, "site/_connected.html", {"services": await overview.services()})
