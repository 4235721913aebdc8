"""Conversations and turns in the admin: archive, restore, delete and rename."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.conversations import services
from apps.conversations.models import Conversation, Turn
from apps.conversations.parts import content

# Django's stubs require a type argument that its classes do not accept at run time.
if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
    Inline = admin.TabularInline[Any, Any]
else:
    Base, Inline = admin.ModelAdmin, admin.TabularInline

SHOWN = 200


class Words:
    """A column with the beginning of the text."""

    def words(self, turn: Turn) -> str:
        text = content(turn.parts)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class TurnInline(Words, Inline):
    model = Turn
    fields = ("created_at", "role", "status", "words", "provider", "model")
    readonly_fields = fields
    ordering = ("created_at",)
    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Conversation)
class ConversationAdmin(Base):
    list_display = ("title", "id", "provider", "model", "source", "last_message_at", "archived_at")
    list_filter = ("provider", "source", ("archived_at", admin.EmptyFieldListFilter), "agent_name")
    search_fields = ("id", "title", "model", "agent_name")
    date_hierarchy = "last_message_at"
    fields = (
        *("id", "title", "provider", "model", "agent_name", "source", "flags", "owner"),
        *("created_at", "updated_at", "last_message_at", "archived_at"),
    )
    readonly_fields = tuple(name for name in fields if name != "title")
    inlines = (TurnInline,)
    actions = ("archive", "restore")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Conversation, form: Any, change: bool) -> None:
        services.rename(obj.pk, obj.title)

    @admin.action(description="Archive selected conversations", permissions=["change"])
    def archive(self, request: HttpRequest, rows: "QuerySet[Conversation]") -> None:
        count = services.bulk_archive(_ids(rows))
        self.message_user(request, f"Archived: {count}", messages.SUCCESS)

    @admin.action(description="Restore selected conversations", permissions=["change"])
    def restore(self, request: HttpRequest, rows: "QuerySet[Conversation]") -> None:
        count = services.bulk_restore(_ids(rows))
        self.message_user(request, f"Restored: {count}", messages.SUCCESS)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Objects of the confirmation page: the conversations without their turns."""
        names = [str(conversation) for conversation in objs]
        return names, {"conversations": len(names)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Conversation) -> None:
        services.delete([obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Conversation]") -> None:
        services.delete(_ids(queryset))


def _ids(rows: "QuerySet[Conversation]") -> list[str]:
    return list(rows.values_list("id", flat=True))


@admin.register(Turn)
class TurnAdmin(Words, Base):
    list_display = ("created_at", "conversation", "role", "status", "words", "provider", "model")
    list_filter = ("role", "status", "provider", "source")
    list_select_related = ("conversation",)
    search_fields = ("conversation__id", "conversation__title", "text", "inflight_id")
    date_hierarchy = "created_at"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
