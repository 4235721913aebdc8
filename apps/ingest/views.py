"""The ingest page and its fragments.

An action responds with the live partials (`panels`) and a toast. The websocket sends the same
partials to all other open pages.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import PurePosixPath
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.code import languages
from apps.core.config import config
from apps.core.errors import CodeinfoError, InvalidInput, NotFound
from apps.core.principal import current
from apps.core.security.local_users import is_on_this_machine
from apps.embedding.catalogue import available_models
from apps.index import queries
from apps.index.models import Clone, IngestRun, Root, SourceFileQuerySet
from apps.index.types import RUNNING_STATES
from apps.ingest import bases, folders, hooks, panels, services, skips
from apps.ingest.discovery import eligibility
from apps.ingest.forms import StartForm
from apps.ingest.git_folders import git_folders
from apps.ingest.runs import orphans, submit
from apps.ingest.types import LeftOut
from apps.ingest.watching import states

# The page configures htmx to swap a 422 like a 200.
REFUSED = 422


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """`GET /ingest[?path=]`: `path` fills in the form."""
    path = request.GET.get("path", "").strip()
    form = StartForm(initial={"path": path, "name": PurePosixPath(path).name})
    return render(request, "ingest/page.html", {**panels.context(), "form": form})


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Start a run from the form. Respond with an empty form, or with its errors."""
    form = StartForm(request.POST)
    if not form.is_valid() or form.start() is None:
        return _form(request, form)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("/ingest")
    return _started(request)


@require_GET
async def nearby(request: HttpRequest) -> HttpResponse:
    """`GET /ui/ingest/nearby[?view=page]`: the git repositories beneath the bases, which may be
    ingested with one click each, on the empty chat or on the ingest page."""
    ingested = await sync_to_async(_chosen_folders)()
    # The search takes up to some seconds, so it does not occupy the thread that views share.
    search = sync_to_async(git_folders, thread_sensitive=False)
    repositories = await search(leave_out=(*ingested, folders.first_root(config())))
    response: HttpResponse = await sync_to_async(render)(
        request, "ingest/_nearby.html", {"found": repositories, "view": _view(request.GET)}
    )
    return response


def _chosen_folders() -> list[str]:
    """The folders that are ingested, or being so."""
    runs = [run.path for run in queries.live_runs()]
    return runs + [root.path for root in queries.published_roots()]


def _view(data: QueryDict) -> str:
    return "page" if data.get("view") == "page" else "chat"


@require_POST
def start_next(request: HttpRequest) -> HttpResponse:
    """Start the run of a repository of that list. Respond with its progress, and on the ingest page
    with the list of the others."""
    view = _view(request.POST)
    try:
        services.start_next(request.POST.get("path", ""))
    except CodeinfoError as error:
        response = HttpResponse("\n".join(panels.render(view).values()), status=REFUSED)
        return _with_toast(response, f"{error.code}: {error.message}", error=True)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("/ingest" if view == "page" else "/chat")
    parts = list(panels.render(view).values())
    if view == "page":
        parts.append(render_to_string("ingest/_nearby_soon.html", {"oob": True}))
    return HttpResponse("\n".join(parts))


def _form(request: HttpRequest, form: StartForm) -> HttpResponse:
    part = "ingest/_form.html" if request.htmx else "ingest/page.html"  # type: ignore[attr-defined]
    context = {**panels.context(), "form": form}
    if form.outside and is_on_this_machine(request):
        with suppress(CodeinfoError):
            context["allowable"] = str(bases.narrow(form.outside))
    return render(request, part, context, status=REFUSED if form.errors else 200)


@require_POST
def allow(request: HttpRequest) -> HttpResponse:
    """Allow the folder that the form has shown to be ingested. Respond with the form."""
    if not is_on_this_machine(request):
        text = "Folders are allowed only from a browser on the machine that runs codeinfo."
        raise InvalidInput(text, code="FORBIDDEN")
    form = StartForm(request.POST)
    form.is_valid()
    try:
        folder = bases.add_shown(request.POST.get("allow", ""))
    except CodeinfoError as error:
        form.add_error("path", error.message)
        return _form(request, form)
    return _with_toast(_form(request, form), f"{folder} may be ingested")


def _started(request: HttpRequest) -> HttpResponse:
    """An empty form and the live partials."""
    context = {**panels.context(), "form": StartForm(), "oob": True}
    response = render(request, "ingest/_form.html", context)
    response.write(_panels_html())
    response["HX-Reswap"] = "none"
    return response


def _action(act: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view for POST that tells in a toast why an action is refused."""

    @require_POST
    @wraps(act)
    def view(request: HttpRequest, **named: Any) -> HttpResponse:
        try:
            return act(request, **named)
        except CodeinfoError as error:
            response = HttpResponse(_panels_html(), status=REFUSED)
            return _with_toast(response, f"{error.code}: {error.message}", error=True)

    return view


@_action
def cancel(request: HttpRequest, run_id: str) -> HttpResponse:
    """Cancel a run. Responds within a second; until it has ended, the page shows that."""
    services.cancel(run_id)
    run = queries.find_run(run_id)
    if run.state not in RUNNING_STATES:
        ended = "Ingest cancelled" if run.state == "cancelled" else "The ingest had ended before"
        return _done(ended)
    if run.publishing:
        return _done("Too late to cancel: the ingest has succeeded and ends.")
    return _done("Cancelling. The run stops after its current step.")


@_action
def repeat(request: HttpRequest, run_id: str, start: Callable[[str], IngestRun]) -> HttpResponse:
    """Repeat a run by one of the functions of `services`."""
    start(run_id)
    return _done("Ingest started")


@_action
def reembed(request: HttpRequest) -> HttpResponse:
    """Queue a re-embed of each selected root."""
    runs = submit.queue_reembeds([root.id for root in _roots(request.POST.getlist("root"))])
    return _done(f"{len(runs)} re-embeds queued" if len(runs) > 1 else "Re-embed started")


@_action
def start_ref(request: HttpRequest) -> HttpResponse:
    """Ingest a branch, tag or commit of a repository beside it."""
    root = _root(request.POST.get("root", ""))
    run = services.start_ref(root, request.POST.get("ref", "").strip())
    return _done(f"Ingest of {run.name} started")


@require_POST
def watch(request: HttpRequest, root_id: str) -> HttpResponse:
    """Have the changes of a root ingested by themselves, or not."""
    on = request.POST.get("watch") == "on"
    services.set_watch(_root(root_id), on=on)
    return _done("Changes are ingested by themselves" if on else "Changes wait for an ingest")


@_action
def ingest_again(request: HttpRequest) -> HttpResponse:
    """Queue folders whose index has no row in the database, as new roots."""
    known = {str(orphan.root): orphan.root for orphan in orphans.find()}
    chosen = [known[root] for root in request.POST.getlist("root") if root in known]
    runs = services.ingest_again(chosen)
    return _done(f"{len(runs)} ingest{'' if len(runs) == 1 else 's'} queued")


@require_GET
def confirm_remove(request: HttpRequest) -> HttpResponse:
    """The dialog that confirms a removal."""
    roots = _roots(request.GET.getlist("root"))
    return render(request, "ingest/_remove.html", {"roots": roots})


@_action
def remove(request: HttpRequest) -> HttpResponse:
    """Remove the selected roots one by one. An error ends the loop."""
    roots = _roots(request.POST.getlist("root"))
    for root in roots:
        services.remove(root.path)
    return _done(f"Removed {len(roots)} folders" if len(roots) > 1 else "Removed")


@require_GET
def ask_model(request: HttpRequest) -> HttpResponse:
    """The dialog that selects another embedding model for the whole index."""
    context = {**panels.context(), "models": available_models()}
    return render(request, "ingest/_change_model.html", context)


@_action
def change_model(request: HttpRequest) -> HttpResponse:
    """Lock the index to `model`, and queue all roots."""
    runs = services.change_model(request.POST.get("model", ""))
    one = len(runs) == 1
    return _done(
        f"{len(runs)} folder{'' if one else 's'} {'is' if one else 'are'} being embedded again"
    )


@require_GET
def living_parts(request: HttpRequest) -> HttpResponse:
    """All live partials, for the Refresh button and for pages without a websocket."""
    return HttpResponse(_panels_html())


@require_GET
def models(request: HttpRequest) -> HttpResponse:
    """The model field with all available models. May call an embedding server."""
    context = {
        "models": available_models(),
        "locked_model": queries.locked_model(),
        "form": StartForm(request.GET),
    }
    return render(request, "ingest/_model.html", context)


@require_GET
def folder_picker(request: HttpRequest) -> HttpResponse:
    """The folder picker, or an error with links to the bases."""
    path = request.GET.get("path", "")
    context: dict[str, Any] = {"asked": path, "bases": [str(base) for base in bases.bases()]}
    try:
        listing = folders.list_dirs(path)
    except CodeinfoError as error:
        context["error"] = error.code
    else:
        at_base = listing.path == listing.base
        context |= {
            "listing": listing,
            "up": None if at_base else listing.path.rpartition("/")[0] or "/",
            "entries": [(name, f"{listing.path.rstrip('/')}/{name}") for name in listing.dirs],
        }
    inside = request.headers.get("HX-Target") == "picker"
    return render(request, "ingest/_picker.html" if inside else "ingest/_folders.html", context)


@require_GET
@never_cache
def details(request: HttpRequest, root_id: str) -> HttpResponse:
    """The drawer about one root. It has the secret of its webhook."""
    root = _root(root_id)
    clone = Clone.objects.filter(path=root.path).first()
    context = {
        "clone": clone,
        "hook_secret": hooks.secret_of(clone.id) if clone and current().is_staff else "",
        "root": root,
        "locked_model": queries.locked_model(),
        "active": queries.active_run(),
        "chroma": panels.followed([root])[0],
        "folder": states.known(root),
        "problems": queries.live_files(root).with_problem().count(),
        "without_vectors": queries.live_files(root).without_vectors().count(),
        "left_out": skips.left_out_of_root(root),
        "unconfirmed": queries.unconfirmed_run(root),
        "include": sorted(config().ingest_include or _known_names()),
        "exclude": sorted({*eligibility.EXCLUDED, *eligibility.BY_NAME, *config().ingest_exclude}),
    }
    return render(request, "ingest/_details.html", context)


def _known_names() -> set[str]:
    kinds = languages.FILE_TYPES
    return {f".{extension}" for kind in kinds for extension in kind.extensions} | {
        name for kind in kinds for name in kind.names
    }


@require_GET
def skipped(request: HttpRequest) -> HttpResponse:
    """The drawer with the skip list of `root` or `run`. From page 2 on, only the rows."""
    query, name, files, left_out = _skip_source(request)
    number = _page_number(request)
    skip_page = skips.page(files, request.GET.get("reason", ""), number)
    part = "ingest/_skipped_rows.html" if number > 1 else "ingest/_skipped.html"
    context = {"list": skip_page, "source": query, "name": name, "left_out": left_out}
    return render(request, part, context)


@require_GET
def skipped_csv(request: HttpRequest) -> StreamingHttpResponse:
    _, name, files, left_out = _skip_source(request)
    chosen = request.GET.get("reason", "")
    lines = skips.csv_lines(skips.filtered(files, chosen), LeftOut() if chosen else left_out)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    filename = f"skipped-{slugify(name) or 'files'}.csv"
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def _skip_source(request: HttpRequest) -> tuple[str, str, SourceFileQuerySet, LeftOut]:
    """Return query string, name, files and left-out names of a skip list. Raises NotFound."""
    if "run" in request.GET:
        run = queries.find_run(request.GET["run"])
        return f"run={run.id}", run.name, queries.listed_by(run), skips.left_out_of(run)
    root = _root(request.GET.get("root", ""))
    files = queries.live_files(root).listed()
    return f"root={root.id}", root.name, files, skips.left_out_of_root(root)


def _page_number(request: HttpRequest) -> int:
    page = request.GET.get("page", "1")
    return max(1, int(page)) if page.isascii() and page.isdigit() else 1


def _root(root_id: str) -> Root:
    return _roots([root_id])[0]


def _roots(ids: Iterable[str]) -> list[Root]:
    """Return the published roots with these ids, in their order. Raises NotFound if there are
    none."""
    published = {str(root.id): root for root in queries.published_roots()}
    roots = [published[root_id] for root_id in ids if root_id in published]
    if not roots:
        raise NotFound("This folder is no longer ingested.")
    return roots


def _panels_html() -> str:
    return "\n".join(panels.render("page").values())


def _done(text: str) -> HttpResponse:
    return _with_toast(HttpResponse(_panels_html()), text)


def _with_toast(response: HttpResponse, text: str, *, error: bool = False) -> HttpResponse:
    # The target is the body, as the pressed button may be replaced by now.
    toast = {"target": "body", "text": text, "error": error}
    response["HX-Trigger"] = json.dumps({"toast": toast})
    return response
