"""Admin pages of roots, runs and files. All are read-only; roots can be re-embedded or removed."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect

from apps.core.errors import CodeinfoError, NotFound
from apps.index import queries
from apps.index.models import IngestRun, Root, SourceFile
from apps.ingest import services
from apps.ingest.runs import submit

# Django's class is generic only in its stubs.
if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin


class ReadOnly(Base):
    """An admin of rows that only ingests write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Root)
class RootAdmin(ReadOnly):
    list_display = ("name", "path", "model", "last_state", "files", "chunks", "last_ingest_at")
    list_filter = ("last_state", "model")
    search_fields = ("name", "path", "description")
    date_hierarchy = "last_ingest_at"
    actions = ("reembed",)

    def response_action(self, request: HttpRequest, queryset: Any) -> Any:  # type: ignore[override]
        """Show why an action is refused, in the list."""
        try:
            return super().response_action(request, queryset)
        except CodeinfoError as error:
            return self._refuse(request, error)
        except ValidationError:
            # The selection is not a UUID: Django would answer 500.
            return self._refuse(request, NotFound("No such repository."))

    @method_decorator(csrf_protect)
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Django's view without its transaction: subscribers must see the removal when they are
        notified, and a failure must leave its run in the database."""
        try:
            return self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]
        except CodeinfoError as error:
            return self._refuse(request, error)

    def _refuse(self, request: HttpRequest, error: CodeinfoError) -> HttpResponse:
        self.message_user(request, f"{error.code}: {error.message}", messages.ERROR)
        return redirect("admin:index_root_changelist")

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
        return names, {"roots": len(names)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Root) -> None:
        """Remove a root with its vectors, and the model lock with the last root."""
        services.remove(obj.path)

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Root]") -> None:
        for root in queryset:
            services.remove(root.path)


@admin.register(IngestRun)
class IngestRunAdmin(ReadOnly):
    list_display = ("name", "operation", "state", "message", "files", "chunks", "queued_at")
    list_filter = ("state", "operation", "dry_run", "model")
    search_fields = ("name", "path", "last_error", "message")
    date_hierarchy = "queued_at"


@admin.register(SourceFile)
class SourceFileAdmin(ReadOnly):
    list_display = ("path", "root", "language", "size", "chunks", "skip_reason", "problem")
    list_filter = ("root", "language")
    list_select_related = ("root",)
    search_fields = ("path", "skip_reason", "problem")
    show_full_result_count = False
