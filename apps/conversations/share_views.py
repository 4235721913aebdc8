"""Sharing a conversation: its dialog on the chat page, and the page that a link opens."""

from csp.constants import NONE, SELF
from csp.decorators import csp
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from apps.conversations import exporting, sharing
from apps.conversations.renderers import standalone
from apps.core.config import config
from apps.core.errors import Conflict
from apps.core.security.authentication import requires_credentials

# The page that a link opens: caches, other sites and search engines do not learn of it. It runs
# nothing, and requests its stylesheet alone.
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
POLICY = {
    "default-src": [NONE],
    "style-src": [SELF],
    "img-src": [SELF, "data:"],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
}
REFUSED = 422  # htmx swaps it like a 200


@require_safe
@csp(POLICY)
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """`GET /shared/<token>[?download=1]`: a copy of a conversation, as a page or as a file."""
    row = sharing.opened(token)
    if row is None:
        response = render(request, standalone.PAGE, {"missing": True}, status=404)
    elif "download" in request.GET:
        response = exporting.attachment(row.title, "html", standalone.page(row.title, row.html))
    else:
        context = {"title": row.title, "html": mark_safe(row.html), "share": row}
        response = render(request, standalone.PAGE, context)
    for name, value in HEADERS.items():
        response[name] = value
    return response


@require_GET
def dialog(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/shares?c=`: the dialog of a conversation's links."""
    return _links(request, request.GET.get("c", ""), "conversations/_share_dialog.html")


@require_POST
@never_cache  # it has the link
def share(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/share` `c=`: make a link, which is shown this once."""
    conversation_id = request.POST.get("c", "")
    try:
        token = sharing.share(conversation_id)
    except Conflict as error:
        return _links(request, conversation_id, problem=error)
    link = request.build_absolute_uri(f"/shared/{token}")
    return _links(request, conversation_id, link=link)


@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/revoke` `c=&link=`: revoke a link in the dialog of a conversation."""
    sharing.revoke(request.POST.get("link", ""))
    return _links(request, request.POST.get("c", ""))


def _links(
    request: HttpRequest,
    conversation_id: str,
    template: str = "conversations/_share.html",
    *,
    link: str = "",
    problem: Conflict | None = None,
) -> HttpResponse:
    own, others = sharing.links(conversation_id)
    context = {
        "conversation_id": conversation_id,
        "own": own,
        "others": others,
        "days": sharing.LIFETIME.days,
        "needs_login": requires_credentials(config()),
        "link": link,
        "problem": problem,
    }
    return render(request, template, context, status=REFUSED if problem else 200)
