"""Conversations and turns in the admin: read, archive, restore, delete and rename."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.conversations import queries, services, tagging, tags, transcript
from apps.conversations.answers import markdown
from apps.conversations.answers.exchange import exchanges_of, usage_line
from apps.conversations.branches import followed
from apps.conversations.models import Conversation, Share, Turn
from apps.conversations.parts import content
from apps.core.http.admin import ReadOnly, Table, Values


class TagFilter(admin.SimpleListFilter):
    title = "tag"
    parameter_name = "tag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(tag, tag) for tag in tagging.known()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Conversation]
    ) -> QuerySet[Conversation]:
        tag = self.value()
        return tags.having(queryset, tag) if tag in dict(self.lookup_choices) else queryset


class RatingFilter(admin.SimpleListFilter):
    title = "rating of an answer"
    parameter_name = "rating"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(rating.value), str(rating.label)) for rating in Turn.Rating]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Conversation]
    ) -> QuerySet[Conversation]:
        if self.value() not in dict(self.lookup_choices):
            return queryset
        rated = Turn.objects.filter(conversation=OuterRef("pk"), rating=self.value())
        return queryset.filter(Exists(rated))


LONGEST = 200
# The newest turns, which the page of a conversation shows.
SHOWN_TURNS = 2 * transcript.SHOWN_EXCHANGES


class CountedList(ChangeList):
    """A list of conversations of which those of the page have their turns and tokens counted: to
    count all of them would take as long as the database is large."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        counts = queries.counts(row.pk for row in self.result_list)
        for row in self.result_list:
            row.turn_count, row.token_count = counts.get(row.pk, (0, 0))


@admin.register(Conversation)
class ConversationAdmin(Table):
    list_display = ("title", "turn_count", "token_count", "model", "owner", "last_message_at")
    list_filter = (
        ("archived_at", admin.EmptyFieldListFilter),
        *(TagFilter, RatingFilter, "provider", ("agent_name", Values), "source"),
    )
    list_select_related = ("owner",)
    search_fields = ("id", "title", "model", "agent_name")
    date_hierarchy = "last_message_at"
    readonly_fields = (
        *("tag_list", "owner", "provider", "model", "agent_name", "source", "flags"),
        *("created_at", "last_message_at", "archived_at", "id"),
    )
    fieldsets = (
        (None, {"fields": ("title",)}),
        ("Details", {"fields": readonly_fields, "classes": ("collapse",)}),
    )
    actions = ("archive", "restore")

    @admin.display(description="Tags")
    def tag_list(self, row: Conversation) -> str:
        return ", ".join(row.tag_names)

    @admin.display(description="Turns")
    def turn_count(self, row: Any) -> str:
        return f"{row.turn_count:,}"

    @admin.display(description="Model tokens")
    def token_count(self, row: Any) -> str:
        return f"{row.token_count:,}"

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return CountedList

    def view_on_site(self, obj: Conversation) -> str:
        return transcript.address(obj.pk, obj.agent_name)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *more: Any, **options: Any
    ) -> Any:
        if request.user.has_perm("conversations.view_turn"):
            context["transcript"] = transcript_of(context["original"].pk)
        return super().render_change_form(request, context, *more, **options)

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


def _to_conversation(row: Turn | Share) -> SafeString:
    address = reverse("admin:conversations_conversation_change", args=[row.conversation_id])
    return format_html('<a href="{}">{}</a>', address, row.conversation)


def _ids(rows: "QuerySet[Conversation]") -> list[str]:
    return list(rows.values_list("id", flat=True))


def transcript_of(conversation: str) -> dict[str, Any]:
    """The newest turns of the branch that is followed.

    others: number of turns that are on other branches.
    """
    branch = followed(conversation)
    newest = branch.order_by("-created_at", "-id").defer(*queries.SEARCHED)[: SHOWN_TURNS + 1]
    turns = list(newest)
    return {
        "are_all": len(turns) <= SHOWN_TURNS,
        "others": Turn.objects.filter(conversation=conversation).count() - branch.count(),
        "exchanges": [
            (view, markdown.plain(view.answer_text), usage_line(view.usage))
            for view in exchanges_of(reversed(turns[:SHOWN_TURNS]))
        ],
    }


@admin.register(Turn)
class TurnAdmin(ReadOnly):
    list_display = ("created_at", "role", "words", "conversation", "status", "token_count", "model")
    list_filter = ("role", "status", "rating", "provider", "source")
    list_select_related = ("conversation",)
    search_fields = ("conversation__id", "conversation__title", "text", "inflight_id")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    show_full_result_count = False
    fields = (
        *("conversation_link", "role", "status", "message", "created_at", "provider", "model"),
        *("rating", "usage", "timing", "error", "command", "source", "inflight_id", "content"),
    )

    @admin.display(description="Text")
    def words(self, turn: Turn) -> str:
        text = content(turn.parts)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

    @admin.display(description="Tokens")
    def token_count(self, turn: Turn) -> str:
        total = (turn.usage or {}).get("totalTokens")
        return "" if total is None else f"{total:,}"

    @admin.display(description="Conversation")
    def conversation_link(self, turn: Turn) -> SafeString:
        return _to_conversation(turn)

    @admin.display(description="Error message")
    def message(self, turn: Turn) -> str:
        return str((turn.error or {}).get("message", ""))

    @admin.display(description="Text")
    def content(self, turn: Turn) -> SafeString:
        text = content(turn.parts)
        is_answer = turn.role == Turn.Role.ASSISTANT
        body = markdown.plain(text) if is_answer else format_html('<p class="asked">{}</p>', text)
        return format_html('<div class="prose">{}</div>', body)

    def view_on_site(self, obj: Turn) -> str:
        return transcript.address(obj.conversation_id, obj.conversation.agent_name)


@admin.register(Share)
class ShareAdmin(Table):
    """To delete a link is to revoke it. Its token is not known here."""

    list_display = ("title", "conversation_link", "creator", "created_at", "expires_at")
    list_select_related = ("conversation", "creator")
    search_fields = ("title",)
    fields = ("title", "conversation_link", "creator", "created_at", "expires_at")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Share]":
        return super().get_queryset(request).defer("html")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="Conversation")
    def conversation_link(self, row: Share) -> SafeString:
        return _to_conversation(row)
