"""What the admin's pages of all apps share."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.core.errors import CodeinfoError, NotFound


class Table(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """An admin of rows that nobody adds here."""

    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def response_action(self, request: HttpRequest, queryset: Any) -> Any:  # type: ignore[override]
        """Show why an action is refused, in the list."""
        try:
            return super().response_action(request, queryset)
        except CodeinfoError as error:
            return self.refuse(request, error)
        except ValidationError:
            # The selection is not a UUID: Django would answer 500.
            return self.refuse(request, NotFound("The selected rows are not there."))

    def refuse(self, request: HttpRequest, error: CodeinfoError) -> HttpResponse:
        self.message_user(request, f"{error.code}: {error.message}", messages.ERROR)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")


class ReadOnly(Table):
    """An admin of rows that only codeinfo writes."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Values(admin.AllValuesFieldListFilter):
    """A filter by the values of a column, in which the empty text has a name."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or "None"}
