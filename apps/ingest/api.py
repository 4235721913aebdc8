"""The JSON routes of docs/contract.md §5. `apps.core.error_map` answers errors."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.security.authentication import refuse_all_but_commands
from apps.embedding.catalogue import available_models
from apps.index import queries
from apps.ingest import bases, folders, services
from apps.ingest.remote import clones
from apps.ingest.serializers import (
    BaseSerializer,
    ModelSerializer,
    ReembedSerializer,
    StartSerializer,
    bases_wire,
    model_wire,
    root_wire,
    run_wire,
    status_wire,
)


class Start(APIView):
    """`POST /ingest/start` → 202 `{runId}` when the run is queued. `path` may be a URL."""

    serializer_class = StartSerializer

    def post(self, request: Request) -> Response:
        run = services.start_run(**StartSerializer.read(request.data))
        return Response({"runId": str(run.id)}, status=202)


class Status(APIView):
    """`GET /ingest/status/<runId>`."""

    def get(self, request: Request, run_id: str) -> Response:
        return Response(status_wire(queries.find_run(run_id)))


class Runs(APIView):
    """`GET /ingest/runs`: the runs in progress, then the queued ones."""

    def get(self, request: Request) -> Response:
        return Response({"runs": [run_wire(run) for run in queries.live_runs()]})


class Cancel(APIView):
    """`POST /ingest/cancel/<runId>`: answers within a second; the run may still be ending."""

    def post(self, request: Request, run_id: str) -> Response:
        return Response({"status": "ok", "cleanup": services.cancel(run_id)})


class Reembed(APIView):
    """`POST /ingest/reembed/<root>` → 202 `{runId}`."""

    serializer_class = ReembedSerializer

    def post(self, request: Request, path: str) -> Response:
        run = services.reembed(path, **ReembedSerializer.read(request.data or {}))
        return Response({"runId": str(run.id)}, status=202)


class Remove(APIView):
    """`POST /ingest/remove/<root>`."""

    def post(self, request: Request, path: str) -> Response:
        return Response({"status": "ok", "unlocked": services.remove(path)})


class Roots(APIView):
    """`GET /ingest/roots`, the latest ingest first."""

    def get(self, request: Request) -> Response:
        urls = clones.urls()
        roots = [root_wire(root, urls.get(root.path)) for root in queries.published_roots()]
        return Response({"roots": roots, "lockedModelId": queries.locked_model()})


class Models(APIView):
    """`GET /ingest/models`."""

    def get(self, request: Request) -> Response:
        models = [model_wire(model) for model in available_models()]
        return Response({"models": models, "lockedModelId": queries.locked_model()})


class Model(APIView):
    """`POST /ingest/model {model}` → 202 `{runIds}`: embed all folders again with it."""

    serializer_class = ModelSerializer

    def post(self, request: Request) -> Response:
        runs = services.change_model(**ModelSerializer.read(request.data))
        return Response({"runIds": [str(run.id) for run in runs]}, status=202)


class Bases(APIView):
    """`GET /ingest/bases`, and `POST /ingest/bases {path}` to add one."""

    serializer_class = BaseSerializer

    def get(self, request: Request) -> Response:
        return Response(bases_wire())

    def post(self, request: Request) -> Response:
        return _changed(request, bases.add)


class RemoveBase(APIView):
    """`POST /ingest/bases/remove {path}`."""

    serializer_class = BaseSerializer

    def post(self, request: Request) -> Response:
        return _changed(request, bases.remove)


def _changed(request: Request, change: Callable[[str], Path]) -> Response:
    refuse_all_but_commands(request.headers.get("Authorization", ""))
    path = change(BaseSerializer.read(request.data)["path"])
    return Response({"status": "ok", "path": str(path), **bases_wire()})


class Dirs(APIView):
    """`GET /ingest/dirs?path=`."""

    def get(self, request: Request) -> Response:
        return Response(asdict(folders.list_dirs(request.query_params.get("path", ""))))
