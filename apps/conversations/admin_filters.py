"""Filters of the admin's lists of conversations: by a tag, and by the rating of an answer."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from apps.conversations import tagging, tags
from apps.conversations.models import Conversation, Turn


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
