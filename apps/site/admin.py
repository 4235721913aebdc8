"""The admin's users and groups, with the fields that need no script, and its settings."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.db.models import QuerySet

# The header has the same links.
admin.site.enable_nav_sidebar = False
admin.site.unregister([User, Group])


def with_types(permissions: "QuerySet[Permission]") -> "QuerySet[Permission]":
    """Permissions with the types that their names begin with, read by a query of their own: some
    servers that speak MongoDB's protocol return no rows of a join."""
    return permissions.select_related(None).prefetch_related("content_type")


class PermissionsForm(UserChangeForm):  # type: ignore[type-arg]  # generic in its stubs only
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if permissions := self.fields.get("user_permissions"):
            permissions.queryset = with_types(permissions.queryset)  # type: ignore[attr-defined]


@admin.register(User)
class CodeinfoUserAdmin(UserAdmin):  # type: ignore[type-arg]
    # Two lists with buttons between them, and fields for dates, are beyond screen readers.
    filter_horizontal = ()
    form = PermissionsForm
    list_display = ("username", "is_staff", "is_superuser", "is_active", "last_login")
    list_filter = ("is_staff", "is_superuser", "is_active")
    ordering = ("-date_joined",)
    readonly_fields = ("last_login", "date_joined")


@admin.register(Group)
class CodeinfoGroupAdmin(GroupAdmin):
    filter_horizontal = ()

    def formfield_for_manytomany(self, *args: Any, **options: Any) -> Any:
        field: Any = super().formfield_for_manytomany(*args, **options)
        field.queryset = with_types(field.queryset)
        return field
