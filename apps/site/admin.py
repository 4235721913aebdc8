"""The admin's users, with the fields that need no script, and its settings."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

# The header has the same links.
admin.site.enable_nav_sidebar = False
admin.site.unregister([User, Group])


@admin.register(User)
class CodeinfoUserAdmin(UserAdmin):  # type: ignore[type-arg]
    # Two lists with buttons between them, and fields for dates, are beyond screen readers.
    filter_horizontal = ()
    list_display = ("username", "is_staff", "is_superuser", "is_active", "last_login")
    list_filter = ("is_staff", "is_superuser", "is_active")
    ordering = ("-date_joined",)
    readonly_fields = ("last_login", "date_joined")


@admin.register(Group)
class CodeinfoGroupAdmin(GroupAdmin):
    filter_horizontal = ()
