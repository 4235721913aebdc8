"""Admin pages of repositories, runs and files. Nothing is edited. Repositories are embedded
again or removed, runs repeated or cancelled."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect

from apps.core.errors import CodeinfoError
from apps.core.http.admin import ReadOnly, Values
from apps.index import queries
from apps.index.models import IngestRun, IngestRunQuerySet, Root, SourceFile
from apps.ingest import services
from apps.ingest.runs import submit

# The words of the pages. In the models each would be a migration.
Root._meta.verbose_name, Root._meta.verbose_name_plural = "repository", "repositories"
SourceFile._meta.get_field("root").verbose_name = "repository"
for model in (Root, IngestRun, SourceFile):
    model._meta.get_field("chunks").verbose_name = "passages"


@admin.register(Root)
class RootAdmin(ReadOnly):
    list_display = ("name", "path", "model", "last_state", "files", "chunks", "last_ingest_at")
    list_filter = (("last_state", Values), "model")
    search_fields = ("name", "path", "description")
    date_hierarchy = "last_ingest_at"
    fields = (
        *("name", "path", "description", "model", "last_state", "last_error", "last_ingest_at"),
        *("files", "chunks", "embedded", "skipped", "commit", "branch", "dirty", "watch"),
        *("plain_folder", "generation", "damage", "created_at", "id"),
    )
    actions = ("reembed",)

    def view_on_site(self, obj: Root) -> str:
        return code_address(obj)

    @method_decorator(csrf_protect)
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Django's view without its transaction: subscribers must see the removal when they are
        notified, and a failure must leave its run in the database."""
        try:
            return self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]
        except CodeinfoError as error:
            return self.refuse(request, error)

    @admin.action(description="Re-embed selected repositories", permissions=["reembed"])
    def reembed(self, request: HttpRequest, roots: "QuerySet[Root]") -> None:
        runs = submit.queue_reembeds(roots.values_list("id", flat=True))
        self.message_user(request, f"Re-embeds queued: {len(runs)}", messages.SUCCESS)

    def has_reembed_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("index.change_root")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Roots cannot be removed while a run is queued or in progress."""
        return request.user.has_perm("index.delete_root") and queries.active_run() is None

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List the roots in the confirmation, and not each of their files."""
        names = [str(root) for root in objs]
        return names, {"repositories": len(names)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Root) -> None:
        """Remove a root with its vectors, and the model lock with the last root."""
        services.remove(obj.path)

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Root]") -> None:
        for root in queryset:
            services.remove(root.path)


@admin.register(IngestRun)
class IngestRunAdmin(ReadOnly):
    list_display = ("name", "state", "message", "operation", "files", "chunks", "queued_at")
    list_filter = ("state", "operation", "automatic", "dry_run", "model")
    search_fields = ("name", "path", "last_error", "message")
    date_hierarchy = "queued_at"
    fields = (
        *("name", "path", "state", "message", "last_error", "error_code", "operation"),
        *("queued_at", "started_at", "finished_at", "model", "dry_run", "automatic"),
        *("files", "unchanged", "chunks", "embedded", "skipped", "id"),
    )
    actions = ("again", "cancel")

    def view_on_site(self, obj: IngestRun) -> str:
        return reverse("ingest")

    def has_ingest_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("index.change_root")

    @admin.action(description="Ingest again", permissions=["ingest"])
    def again(self, request: HttpRequest, runs: "QuerySet[IngestRun]") -> None:
        for run in runs:
            services.start_again(run.id)
            self.message_user(request, f"Ingest of {run.name} queued", messages.SUCCESS)

    @admin.action(description="Cancel", permissions=["ingest"])
    def cancel(self, request: HttpRequest, runs: IngestRunQuerySet) -> None:
        live = list(runs.live())
        # The runs end meanwhile, and their rows say so.
        ended = [services.cancel(run.id, timeout=0) for run in live].count("complete")
        self.message_user(request, f"Cancelled: {ended} of {len(live)}", messages.SUCCESS)


@admin.register(SourceFile)
class SourceFileAdmin(ReadOnly):
    list_display = ("path", "root", "language", "size", "chunks", "skip_reason", "problem")
    list_filter = ("root", ("language", Values))
    list_select_related = ("root",)
    search_fields = ("path", "skip_reason", "problem")
    show_full_result_count = False
    fields = (
        *("path", "root", "run", "language", "encoding", "size", "chunks", "embedded"),
        *("skip_reason", "problem", "sha256", "since", "until", "id"),
    )

    def view_on_site(self, obj: SourceFile) -> str | None:
        return code_address(obj.root, obj.path) if obj.root else None


def code_address(root: Root, path: str = "") -> str:
    """The page of the code of a repository, or of a file in it."""
    return f"{reverse('code')}?{urlencode({'repo': root.name, 'path': path})}"
