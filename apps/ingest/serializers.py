"""Serializers of docs/contract.md §5: validation of requests, and JSON of responses."""

from typing import Any

from rest_framework import serializers

from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.types import JSON
from apps.core.values.surrogates import has_surrogates
from apps.core.values.times import wire_time
from apps.embedding.types import EmbeddingModel
from apps.index.models import IngestRun, Root
from apps.ingest import bases, folders, refs, skips
from apps.ingest.runs.progress import percent
from apps.ingest.types import counts_of


class UTF8StringField(serializers.CharField):
    """A string that UTF-8 can encode; numbers are not converted. Trimmed by default.

    A lone surrogate is rejected as "Not a valid string.", before trimming. Unlike it,
    `apps.conversations`' VerbatimStringField never trims.
    """

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or has_surrogates(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """A JSON true or false. Unlike BooleanField, it does not convert strings or numbers."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Body(serializers.Serializer[Any]):
    """The body of a request. Unknown keys are ignored."""

    @classmethod
    def read(cls, body: Any) -> JSON:
        """Return the values, by the names of arguments. Raises InvalidInput with all wrong
        fields."""
        serializer = cls(data=body)
        if not serializer.is_valid():
            # A body that is no object has no names.
            wrong = {"non_field_errors": "body"}
            errors = serializer.errors.items()
            problems = [f"{wrong.get(name, name)}: {texts[0]}" for name, texts in errors]
            raise InvalidInput(" ".join(problems))
        return dict(serializer.validated_data)


def _is_refused_ref(path: str) -> bool:
    """Whether a path with an `@` is neither a folder nor PATH@REF: the start says why."""
    if "@" not in path:
        return False
    try:
        folders.resolve(path)
    except CodeinfoError:
        return True
    return False


class StartSerializer(Body):
    """The body of `POST /ingest/start`: the arguments of `services.start_run`. A repository that is
    fetched, by its URL or as a ref, needs no name."""

    path = UTF8StringField(trim_whitespace=False)
    name = UTF8StringField(max_length=255)
    model = UTF8StringField(max_length=255)
    description = UTF8StringField(required=False, allow_blank=True, allow_null=True, default="")
    dryRun = StrictBooleanField(required=False, default=False, source="dry_run")
    plainFolder = StrictBooleanField(required=False, default=False, source="plain_folder")
    force = StrictBooleanField(required=False, default=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        body = getattr(self, "initial_data", None)
        path = body.get("path") if isinstance(body, dict) else None
        if isinstance(path, str) and (refs.is_fetched(path) or _is_refused_ref(path)):
            self.fields["name"] = UTF8StringField(max_length=255, required=False, default="")

    def validate_description(self, value: str | None) -> str:
        return value or ""


class ReembedSerializer(Body):
    """The optional body of `POST /ingest/reembed/<root>`: options of `services.reembed`."""

    force = StrictBooleanField(required=False, default=False)


class BaseSerializer(Body):
    """The body of `POST /ingest/bases` and `POST /ingest/bases/remove`."""

    path = UTF8StringField(trim_whitespace=False, max_length=4096)


class ModelSerializer(Body):
    """The body of `POST /ingest/model`."""

    model = UTF8StringField(max_length=255)


def bases_wire() -> JSON:
    """`GET /ingest/bases`."""
    return {
        "bases": [str(base) for base in bases.bases()],
        "added": [str(base) for base in bases.added()],
        "fixed": bases.is_fixed(),
    }


def status_wire(run: IngestRun) -> JSON:
    """`GET /ingest/status/<runId>`. Fields without a value are left out."""
    left_out = skips.left_out_of(run)
    optional: JSON = {
        "message": run.message,
        "lastError": run.last_error,
        "errorCode": run.error_code,
        "currentFile": run.current_file,
        "fileIndex": run.file_index,
        "fileTotal": run.file_total,
        "percent": percent(run),
        "etaMs": run.eta_ms,
    }
    if left_out.text:
        optional["leftOut"] = {"untracked": left_out.untracked, "ignored": left_out.ignored}
    return {
        "runId": str(run.id),
        "state": run.state,
        "counts": counts_of(run),
        **{name: value for name, value in optional.items() if value not in (None, "")},
    }


def run_wire(run: IngestRun) -> JSON:
    """One entry of `GET /ingest/runs`: the status, and what the run is about."""
    return {**status_wire(run), "name": run.name, "path": run.path, "operation": run.operation}


def root_wire(root: Root, url: str | None) -> JSON:
    """One entry of `GET /ingest/roots`. `url`: where it is fetched from, if it is."""
    at = root.last_ingest_at
    return {
        "runId": str(root.last_run_id),
        "name": root.name,
        "description": root.description or None,
        "path": root.path,
        "model": root.model,
        "status": root.last_state,
        "lastIngestAt": at and wire_time(at),
        "counts": counts_of(root),
        "lastError": root.last_error or None,
        "damage": root.damage or None,
        "url": url,
    }


def model_wire(model: EmbeddingModel) -> JSON:
    """One entry of `GET /ingest/models`."""
    return {
        "id": model.id,
        "displayName": model.display_name,
        "contextLength": model.context_length,
        "format": model.format,
        "size": model.size,
        "filename": model.filename,
    }
