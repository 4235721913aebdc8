"""Prompt presets: texts that a person sends again and again, inserted into the composer by name."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.conversations.models import Preset
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.principal import current
from apps.core.values.texts import check_text

MAX_PRESETS = 50  # of one person
MAX_NAME = 60
MAX_TEXT = 8_000

# Offered as long as nothing is saved.
STARTERS = (
    Preset(
        name="Explain this file",
        text="Explain this file: what it is for, its main parts, and what calls them.\n\nFile: ",
    ),
    Preset(
        name="Review this change",
        text="Review the last commit: what it changes, what else calls the changed code, and what "
        "could break.",
    ),
    Preset(
        name="Find the tests",
        text="Which tests cover this, and what do they leave out?\n\nFunction or class: ",
    ),
)


def own() -> QuerySet[Preset]:
    """The presets of the current user, by name; without a login those of all."""
    return Preset.objects.filter(owner=current().user_id)


def get(preset_id: str) -> Preset:
    """A preset of the current user. Raises NotFound."""
    try:
        preset = own().filter(pk=preset_id).first()
    except ValidationError:
        preset = None
    if preset is None:
        raise NotFound("Prompt not found.")
    return preset


def save(name: str, text: str, preset_id: str = "") -> Preset:
    """Save a new preset, or change one.

    Raises InvalidInput, NotFound, and Conflict NAME_TAKEN.
    """
    preset = get(preset_id) if preset_id else Preset(owner_id=current().user_id)
    preset.name, preset.text = " ".join(name.split()), text.replace("\r\n", "\n")
    check_text("The name of a prompt", preset.name, MAX_NAME)
    check_text("The text of a prompt", preset.text, MAX_TEXT)
    if not preset_id and own().count() >= MAX_PRESETS:
        raise InvalidInput(f"At most {MAX_PRESETS} prompts can be saved. Delete one first.")
    preset.key = f"{preset.owner_id or ''}:{preset.name.casefold()}"
    try:
        with transaction.atomic():
            preset.save()
    except IntegrityError as error:
        message = f"There is a prompt with the name “{preset.name}” already."
        raise Conflict(message, code="NAME_TAKEN") from error
    return preset


@require_GET
def options(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/presets?q=`: what `/…` in the composer may stand for, as a listbox."""
    words = request.GET.get("q", "").casefold().split()
    offered = list(own()) or STARTERS
    found = [one for one in offered if all(word in one.name.casefold() for word in words)]
    context = {"presets": found, "is_filtered": bool(words)}
    return render(request, "conversations/_preset_options.html", context)


@require_GET
def dialog(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/presets/edit`: the dialog in which presets are saved, changed and deleted."""
    return render(request, "conversations/_presets.html", _saved())


@require_POST
def save_form(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/presets/save` `name=&text=[&id=]`: the content of the dialog after it."""
    form = request.POST
    typed = {name: form.get(name, "") for name in ("id", "name", "text")}
    try:
        save(typed["name"], typed["text"], typed["id"])
    except (InvalidInput, Conflict) as error:
        return _form(request, 422, error=error, typed=typed)
    return _form(request)


@require_POST
def delete_form(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/presets/delete` `id=`: the content of the dialog after it."""
    get(request.POST.get("id", "")).delete()
    return _form(request)


def _form(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    context = _saved() | more
    return render(request, "conversations/_presets_form.html", context, status=status)


def _saved() -> dict[str, Any]:
    presets = list(own())
    starters = () if presets else STARTERS
    bounds = {"max_name": MAX_NAME, "max_text": MAX_TEXT}
    return {"presets": presets, "starters": starters, "max_presets": MAX_PRESETS, **bounds}
