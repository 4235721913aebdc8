"""The code browser: repositories, folders, files, and names in them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.decorators.http import require_safe

from apps.browse import code_page, front_page, map_page, name_panel
from apps.browse.history_page import VIEWS, change_url, history_view, last_change, links_of
from apps.browse.impact_page import VIEW as IMPACT
from apps.browse.impact_page import impact_url, impact_view
from apps.browse.lines import code_url
from apps.browse.source import SourceView, open_block, open_source
from apps.browse.source_request import SourceRequest
from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError
from apps.index import queries
from apps.lookup.texts.folders import languages_of, matching_files
from apps.retrieval.query import invalid
from apps.retrieval.repositories import find_root, partly_ingested, repo_id

PAGE_KEYS = (
    (("/",), "Find a file"),
    (("d",), "Look up a name in the current line"),
    (("↑", "↓"), "Previous, next line (with Shift: select)"),
    (("[",), "Previous match"),
    (("]",), "Next match"),
    (("y",), "Copy the permalink"),
    (("o",), "Open in the editor"),
)
MAX_LANGUAGES = 3


@require_safe
def code(request: HttpRequest, where: str = "") -> HttpResponse:
    """`GET /code`, `/code/<repository>`, `/code/<repository>/<path>?lines=12-40`: the repositories,
    a folder, or a file."""
    data = request.GET.dict()
    try:
        if where:
            place = code_page.place_of(where)
        elif data.get("repo"):
            place = code_page.file_or_folder(find_root(data["repo"]), data.get("path", ""))
        else:
            return _page(request, "browse/repositories.html", {"rows": _repositories()})
        pages = {**dict.fromkeys(VIEWS, _history), IMPACT: _impact, map_page.VIEW: _map}
        page = pages.get(data.get("view", ""), _file if place.is_file else _folder)
        return page(request, place, data)
    except CodeinfoError as error:
        context = {
            "error": error,
            "is_page": True,
            "is_being_ingested": _is_being_ingested(error),
            "page_keys": PAGE_KEYS,
        }
        return _page(request, "browse/code.html", context, status_of(error))


def _is_being_ingested(error: CodeinfoError) -> bool:
    """Whether an error names a repository whose first ingest is in progress, or is queued."""
    is_missing = error.code == "REPO_NOT_FOUND"
    return is_missing and error.details.get("repo") in queries.names_being_ingested()


def _file(request: HttpRequest, place: code_page.Place, data: dict[str, str]) -> HttpResponse:
    form = {**data, "repo": repo_id(place.root), "path": place.path}
    source = open_source(SourceRequest.parse(form))
    context = source_context(source) | {"is_page": True}
    return _page(request, "browse/code.html", _around(place) | context)


def _folder(request: HttpRequest, place: code_page.Place, data: dict[str, str]) -> HttpResponse:
    """A folder with its README; of a repository also what it is."""
    repo = repo_id(place.root)
    context = {
        "root": place.root,
        "branch": code_page.branch_of(place.root, place.path, _after(data)),
        "readme": front_page.readme_of(place.root, place.path),
        "languages": [] if place.path else front_page.language_bar(place.root),
        "impact_url": "" if place.path or place.root.plain_folder else impact_url(repo),
        "map_url": map_page.map_url(repo, place.path),
    }
    return _page(request, "browse/folder.html", _around(place) | context)


def _map(request: HttpRequest, place: code_page.Place, data: dict[str, str]) -> HttpResponse:
    """`?view=map`, with the places that an answer cites as `cited`."""
    folder = place.path.rpartition("/")[0] if place.is_file else place.path
    place = code_page.Place(place.root, folder, is_file=False)
    cited = map_page.Cited.read(request.GET.getlist("cited"))
    context = {
        "map": map_page.map_view(place.root, folder, cited),
        "url": code_url(repo_id(place.root), folder),
    }
    return _page(request, "browse/map.html", _around(place) | context)


def _around(place: code_page.Place) -> dict[str, Any]:
    """What is around the page of a place: its tree and breadcrumbs."""
    repo = repo_id(place.root)
    return {
        "repo": repo,
        "path": place.path,
        "crumbs": code_page.crumbs_of(repo, place.path),
        "here": place.path,
        "lacks": partly_ingested([place.root]),
        "damage": place.root.damage,
        "tree": code_page.tree_of(place.root, place.path, is_file=place.is_file),
        "page_keys": PAGE_KEYS,
    }


def _history(request: HttpRequest, place: code_page.Place, data: dict[str, str]) -> HttpResponse:
    """`?view=history`, `blame` or `diff`, with `lines`, `to` and `cursor`."""
    view = partial(history_view, path=place.path, data=data, is_file=place.is_file)
    return _of_commits(request, place, data, "history", view)


def _impact(request: HttpRequest, place: code_page.Place, data: dict[str, str]) -> HttpResponse:
    """`?view=impact`, with `base` and `cursor`: of the whole repository."""
    whole = code_page.Place(place.root, "", is_file=False)
    return _of_commits(request, whole, data, "impact", partial(impact_view, data=data))


def _of_commits(
    request: HttpRequest,
    place: code_page.Place,
    data: dict[str, str],
    name: str,
    view: Callable[[str], Any],
) -> HttpResponse:
    """A page that needs git, or why it cannot be shown, with the way back to the code."""
    repo = repo_id(place.root)
    status, error, shown = 200, None, None
    try:
        shown = view(repo)
    except CodeinfoError as refused:
        status, error = status_of(refused), refused
    context = {
        name: shown,
        "error": error,
        "base": data.get("base", ""),
        "url": code_url(repo, place.path),
    }
    return _page(request, f"browse/{name}.html", _around(place) | context, status)


def source_context(source: SourceView) -> dict[str, Any]:
    """What `_source.html` shows of a file."""
    return {
        "source": source,
        "commits": links_of(source),
        "outline": code_page.outline_of(source),
        "editor": None if source.problem else code_page.editor_link(source.place),
    }


def _repositories() -> list[dict[str, Any]]:
    rows = [
        {
            "root": root,
            "id": repo_id(root),
            "url": code_url(repo_id(root)),
            "languages": languages_of(root, MAX_LANGUAGES),
        }
        for root in queries.published_roots()
    ]
    return sorted(rows, key=lambda row: str(row["id"]).lower())


@require_safe
def source(request: HttpRequest) -> HttpResponse:
    """`GET /ui/retrieval/source?repo=&path=&start=&end=`: the viewer's body for the pane beside an
    answer. A browser is sent to the file's own page."""
    is_part = bool(request.htmx)  # type: ignore[attr-defined]
    template = "browse/_source.html" if is_part else "browse/code.html"
    try:
        wanted = SourceRequest.parse(request.GET.dict())
        if is_part:
            response = _page(request, template, source_context(open_source(wanted)))
        else:
            response = redirect(wanted.url)
    except CodeinfoError as error:
        response = _page(request, template, {"error": error}, status_of(error))
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_safe
def changed(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/changed?repo=&path=&lines=`: the commit that changed the lines last; nothing if
    it is not known."""
    repo, path, span = (request.GET.get(key, "") for key in ("repo", "path", "lines"))
    commit = last_change(repo, path, span) if span else None
    url = change_url(repo, path, span) if commit else ""
    return _page(request, "browse/_changed.html", {"commit": commit, "url": url})


@require_safe
def facts(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/facts?repo=`: where to start, what is imported most, and commands."""
    repo = request.GET.get("repo", "")
    return _part(request, "browse/_facts.html", lambda: {"facts": front_page.facts_of(repo)})


@require_safe
def commits(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/commits?repo=`: the newest commits, and what came after the ingest."""
    repo = request.GET.get("repo", "")
    return _part(request, "browse/_commits.html", lambda: {"commits": front_page.commits_of(repo)})


@require_safe
def imports(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/imports?repo=&path=&cited=`: the imports between the folders of a folder."""

    def context() -> dict[str, Any]:
        root = find_root(request.GET.get("repo", ""))
        cited = map_page.Cited.read(request.GET.getlist("cited"))
        folder = request.GET.get("path", "").strip("/")
        view = map_page.imports_view(root, folder, cited)
        return {"imports": view, "url": request.get_full_path()}

    return _part(request, "browse/_imports.html", context)


@require_safe
def lines(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/lines?repo=&path=&start=&end=`: the highlighted lines of a block."""
    data, template = request.GET.dict(), "browse/_lines.html"
    return _part(request, template, lambda: {"lines": open_block(SourceRequest.parse(data))})


@require_safe
def tree(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/tree?repo=&path=&after=`: entries of a folder; with `rows`, as table rows.

    With `q`, the files whose paths contain it; if it is empty, the tree with `path` in it.
    """
    data = request.GET.dict()
    if "q" in data:
        return _part(request, "browse/_files.html", lambda: _found(data))
    name = "browse/_folder_rows.html" if "rows" in data else "browse/_tree.html"
    return _part(request, name, lambda: {"branch": _branch(data)})


def _branch(data: dict[str, str]) -> code_page.Branch:
    root = find_root(data.get("repo", ""))
    return code_page.branch_of(root, data.get("path", "").strip("/"), _after(data))


def _found(data: dict[str, str]) -> dict[str, Any]:
    root = find_root(data.get("repo", ""))
    if not data["q"].strip():
        place = code_page.file_or_folder(root, data.get("path", ""))
        return {"tree": code_page.tree_of(root, place.path, is_file=place.is_file)}
    entries, more = matching_files(root, data["q"], code_page.MAX_FOUND_FILES)
    repo = repo_id(root)
    return {"found": [code_page.Twig(repo, entry) for entry in entries], "found_more": more}


@require_safe
def name(request: HttpRequest) -> HttpResponse:
    """`GET /ui/code/name?name=&repo=&path=&line=&part=`: the definitions of a name, its callers or
    its uses."""
    part = request.GET.get("part")
    part = part if part in name_panel.PARTS else "definitions"

    def context() -> dict[str, Any]:
        query = name_panel.NameQuery.parse(request.GET.dict())
        return {"query": query, "found": name_panel.PARTS[part](query)}

    return _part(request, f"browse/_name_{part}.html", context)


def _after(data: dict[str, str]) -> int:
    text = data.get("after") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise invalid("after must be a number")
    return int(text)


def _part(request: HttpRequest, template: str, context: Any) -> HttpResponse:
    """A fragment, or the error in its place."""
    try:
        return _page(request, template, context())
    except CodeinfoError as error:
        return _page(request, "browse/_part_error.html", {"error": error}, status_of(error))


def _page(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    response = render(request, template, context, status=status)
    patch_cache_control(response, no_cache=True, private=True)
    return response
