"""Prompt presets: saved, changed and deleted in their dialog, and offered by the composer."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.conversations import presets
from apps.conversations.models import Preset
from apps.core.errors import Conflict, NotFound
from apps.core.principal import Principal, acting_as

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def save(client: Client, name: str, text: str = "Explain it.", **more: str) -> Any:
    return client.post("/ui/chat/presets/save", {"name": name, "text": text, **more})


def options(client: Client, typed: str = "") -> str:
    return str(client.get("/ui/chat/presets", {"q": typed}).content.decode())


def test_a_prompt_is_saved_changed_and_deleted(client: Client) -> None:
    assert "Explain twice" in save(client, " Explain  twice ", "One.\r\nTwo.").content.decode()
    preset = Preset.objects.get()
    assert (preset.name, preset.text, preset.owner) == ("Explain twice", "One.\nTwo.", None)
    save(client, "EXPLAIN twice", "Three.", id=str(preset.pk))
    preset.refresh_from_db()
    assert (preset.name, preset.text) == ("EXPLAIN twice", "Three.")
    assert "Explain this file" not in options(client)
    html = client.post("/ui/chat/presets/delete", {"id": str(preset.pk)}).content.decode()
    assert "Explain this file" in html
    assert not Preset.objects.exists()


def test_the_starters_are_offered_until_something_is_saved(client: Client) -> None:
    assert options(client).count("data-text=") == len(presets.STARTERS) <= 3
    assert not Preset.objects.exists()
    save(client, "My own")
    assert options(client).count("data-text=") == 1


def test_options_have_all_words_that_were_typed(client: Client) -> None:
    save(client, "Explain the file", "a")
    save(client, "Review <b>", 'b "quoted"')
    assert "Explain the file" in options(client, "FILE expl")
    assert "Review" not in options(client, "file")
    assert "Review &lt;b&gt;" in options(client) and "b &quot;quoted&quot;" in options(client)
    assert "Edit prompts" in options(client) and "Edit prompts" in options(client, "file")
    assert options(client, "usr/bin").strip() == ""


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (" ", "x", "The name of a prompt must not be blank."),
        ("x", " \n", "The text of a prompt must not be blank."),
        ("x" * 61, "x", "The name of a prompt has at most 60 characters."),
        ("x", "x" * 8_001, "The text of a prompt has at most 8,000 characters."),
        ("a\0b", "x", "The name of a prompt holds characters that cannot be stored."),
    ],
)
def test_what_cannot_be_saved_is_kept_in_the_form(
    client: Client, name: str, text: str, why: str
) -> None:
    answer = save(client, name, text)
    assert answer.status_code == 422
    assert why in answer.content.decode()
    assert not Preset.objects.exists()


def test_a_name_is_unique_in_any_case(client: Client) -> None:
    save(client, "Straße")
    answer = save(client, "STRASSE", "Mine")
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "There is a prompt with the name “STRASSE” already." in html
    assert ">Mine</textarea>" in html
    save(client, "Other")
    other = Preset.objects.get(name="Other")
    assert save(client, "strasse", id=str(other.pk)).status_code == 422
    assert Preset.objects.count() == 2


def test_there_is_a_most(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "MAX_PRESETS", 2)
    for name in ("a", "b"):
        save(client, name)
    answer = save(client, "c")
    assert answer.status_code == 422
    assert "New prompt" not in answer.content.decode()
    first = Preset.objects.get(name="a")
    assert save(client, "c", id=str(first.pk)).status_code == 200


@pytest.mark.parametrize("wrong", ["nothing", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_prompt_is_404(client: Client, wrong: str) -> None:
    assert save(client, "x", id=wrong).status_code == 404
    assert client.post("/ui/chat/presets/delete", {"id": wrong}).status_code == 404


def test_everybody_has_their_own_prompts() -> None:
    ada, staff = User.objects.create_user("ada"), User.objects.create_user("s", is_staff=True)
    with acting_as(Principal("user", ada.pk)):
        hers = presets.save("Mine", "Hers")
        with pytest.raises(Conflict):
            presets.save("mine", "Again")
    with acting_as(Principal("user", staff.pk, is_staff=True)):
        presets.save("Mine", "Of staff")
        with pytest.raises(NotFound):
            presets.get(str(hers.pk))
        assert [preset.text for preset in presets.own()] == ["Of staff"]
    ada.delete()
    assert [preset.text for preset in Preset.objects.all()] == ["Of staff"]
