"""Every form of the admin, on the database of the tests."""

from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.conversations.models import Conversation, Share, Turn, now_ms
from apps.index.models import IngestRun, Root, SourceFile

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def rows(admin_user: User) -> dict[type[Model], Model]:
    """A row of each table that the admin has."""
    group = Group.objects.create(name="readers")
    group.permissions.add(Permission.objects.get(codename="view_root"))
    admin_user.groups.add(group)
    admin_user.user_permissions.add(Permission.objects.get(codename="view_turn"))
    root = Root.objects.create(name="repo", path="/src/repo", model="m")
    conversation = Conversation.objects.create(id="c1", provider="p", model="m", owner=admin_user)
    run = IngestRun.objects.create(operation="start", path="/src/repo", name="repo", model="m")
    parts = [{"type": "text", "text": "Why?"}]
    return {
        User: admin_user,
        Group: group,
        Root: root,
        IngestRun: run,
        SourceFile: SourceFile.objects.create(
            root=root, run=run, document=uuid4(), path="a.py", since=1
        ),
        Conversation: conversation,
        Turn: Turn.objects.create(conversation=conversation, role="user", parts=parts),
        Share: Share.objects.create(
            token_hash="0" * 64, conversation=conversation, title="Why?", expires_at=now_ms()
        ),
    }


def test_every_list_form_and_history_opens(admin_client: Client, rows: dict[Any, Model]) -> None:
    assert {model for model in apps.get_models() if admin.site.is_registered(model)} == set(rows)
    for model, row in rows.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        for view in ("change", "history", "delete"):
            answer = admin_client.get(reverse(f"{name}_{view}", args=[row.pk]))
            expected = (200, 403) if view == "delete" else (200,)
            assert answer.status_code in expected, (model, view, answer.content[:500])
        assert admin_client.get(reverse(f"{name}_changelist")).status_code == 200
        assert admin_client.get(reverse(f"{name}_add")).status_code in (200, 403)
    password = reverse("admin:auth_user_password_change", args=[rows[User].pk])
    assert admin_client.get(password).status_code == 200


def test_forms_of_users_and_groups_choose_from_permissions_with_their_types(
    admin_client: Client, rows: dict[Any, Model]
) -> None:
    user = admin_client.get(reverse("admin:auth_user_change", args=[rows[User].pk]))
    group = admin_client.get(reverse("admin:auth_group_change", args=[rows[Group].pk]))
    added = admin_client.get(reverse("admin:auth_group_add"))
    for answer in (user, group, added):
        assert "| Can view turn</option>" in answer.content.decode()


def test_the_permissions_of_a_group_and_of_a_user_are_saved(
    admin_client: Client, rows: dict[Any, Model]
) -> None:
    wanted = Permission.objects.get(codename="change_conversation")
    path = reverse("admin:auth_group_change", args=[rows[Group].pk])
    posted = admin_client.post(path, {"name": "writers", "permissions": [wanted.pk]})
    assert posted.status_code == 302, posted.content
    group = Group.objects.get()
    assert (group.name, list(group.permissions.all())) == ("writers", [wanted])
    clerk = User.objects.create_user("clerk")
    path = reverse("admin:auth_user_change", args=[clerk.pk])
    form = {"username": "clerk", "user_permissions": [wanted.pk], "groups": [group.pk]}
    posted = admin_client.post(path, form)
    assert posted.status_code == 302, posted.content
    assert list(clerk.user_permissions.all()) == [wanted] and clerk.groups.get() == group
