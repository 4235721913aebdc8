"""Webhooks of git servers: `POST /hooks/git/<repository id>` after a push.

The sender proves that it has the secret of the repository, with a signature or a token. What it
sends is read for the name of the branch alone, and never for an address.
"""

import hmac
from hashlib import sha256
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import salted_hmac
from django.views.decorators.csrf import csrf_exempt

from apps.core.errors import InvalidInput
from apps.core.security.access import MAX_HOOK, check_length
from apps.index.models import Clone, Root
from apps.ingest.remote.address import read
from apps.ingest.runs.submit import queue_fetch


def secret_of(key: UUID) -> str:
    """Return the secret of a repository's webhook. It is derived from the server's own key."""
    return salted_hmac("codeinfo.hooks", key.hex, algorithm="sha256").hexdigest()


@csrf_exempt
def pushed(request: HttpRequest, key: UUID) -> HttpResponse:
    """`POST /hooks/git/<repository id>` → `{status, queued}`, 202 if a fetch is queued. Raises
    InvalidInput METHOD_NOT_ALLOWED, UNAUTHORIZED, PAYLOAD_TOO_LARGE or VALIDATION_FAILED."""
    if request.method != "POST":
        raise InvalidInput(f"{request.method} is not served here.", code="METHOD_NOT_ALLOWED")
    # Its attribute `body` has a lower limit.
    body = request.read(MAX_HOOK + 1)
    check_length(len(body), MAX_HOOK)
    if not _is_authentic(request, body, secret_of(key)):
        raise InvalidInput("The signature or token is not right.", code="UNAUTHORIZED")
    clone = Clone.objects.filter(id=key).first()
    root = Root.objects.published().filter(path=clone.path).first() if clone else None
    queued = bool(clone and root and _is_about(clone, _ref(body)) and queue_fetch(root))
    return JsonResponse({"status": "ok", "queued": queued}, status=202 if queued else 200)


def _is_authentic(request: HttpRequest, body: bytes, secret: str) -> bool:
    """Whether a request is signed as by GitHub or Gitea, or has the token as from GitLab."""
    signature = hmac.new(secret.encode(), body, sha256).hexdigest()
    expected = {
        "X-Hub-Signature-256": f"sha256={signature}",
        "X-Gitea-Signature": signature,
        "X-Gitlab-Token": secret,
    }
    given = ((request.headers.get(name, ""), value) for name, value in expected.items())
    return any(hmac.compare_digest(one.encode(), value.encode()) for one, value in given)


def _ref(body: bytes) -> str:
    """Return the full name of what was pushed; "" if the event is another one."""
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidInput("The body must be JSON.") from None
    ref = event.get("ref") if isinstance(event, dict) else None
    return ref if isinstance(ref, str) else ""


def _is_about(clone: Clone, ref: str) -> bool:
    """Whether a push may have changed what a clone has. Its default branch is not known here."""
    wanted = read(clone.url).ref
    if not wanted:
        return ref.startswith("refs/heads/")
    return ref in (f"refs/heads/{wanted}", f"refs/tags/{wanted}", wanted)
