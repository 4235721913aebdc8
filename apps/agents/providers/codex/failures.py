"""Translate errors of Codex to Unavailable: a sentence for the user, with `retryable` set."""

import json
import re
from collections.abc import Mapping

from apps.core.errors import Unavailable
from apps.core.types import JSON

MAX_QUOTED = 300
LOGIN_AGAIN = "Codex' login was refused or has run out: log in to Codex again."

# `codexErrorInfo` → our sentence (None: quote Codex) and whether a retry may help.
ERROR_INFO: dict[str, tuple[str | None, bool]] = {
    "unauthorized": (LOGIN_AGAIN, False),
    "usageLimitExceeded": (None, False),
    "sessionBudgetExceeded": (None, False),
    "contextWindowExceeded": (
        "The conversation has grown too long for the model. Begin a new one.",
        False,
    ),
    "badRequest": (None, False),
    "cyberPolicy": (None, False),
    "misalignmentPolicyViolation": (None, False),
}
FINAL_STATUS = frozenset({400, 403, 404, 422})


def turn_failure(error: JSON) -> Unavailable:
    """Return the error of a failed turn; `error` is `{message, codexErrorInfo}`."""
    info = error.get("codexErrorInfo")
    if isinstance(info, str):
        sentence, retryable = ERROR_INFO.get(info, (None, True))
    else:
        status = _status(info)
        sentence = LOGIN_AGAIN if status == 401 else None
        retryable = status != 401 and status not in FINAL_STATUS
    message = sentence or f"Codex failed: {quoted(error.get('message'))}"
    return Unavailable(message, code="PROVIDER_ERROR", retryable=retryable)


def process_lost() -> Unavailable:
    """Return the error of a turn whose process ended."""
    return Unavailable(
        "Codex' process ended in the middle of the answer. It starts again with the next question.",
        code="PROVIDER_UNAVAILABLE",
    )


def interrupted() -> Unavailable:
    """Return the error of a turn that Codex ended early."""
    return Unavailable("Codex broke the answer off.", code="PROVIDER_ERROR")


def not_started(error: Exception) -> Unavailable:
    """Return the error of a process that did not start.

    Quotes the end of its standard error, which usually names a problem in config.toml.
    """
    message = str(error).partition("stderr_tail=")[2] or str(error)
    lines = [line for line in message.splitlines() if line.strip()]
    reason = f"Codex does not start: {quoted(' '.join(lines[-3:]))}"
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE")


def request_failed(error: Exception) -> Unavailable:
    """Return the error of a request that Codex rejected."""
    message = getattr(error, "message", None) or str(error)
    return Unavailable(f"Codex refused: {quoted(message)}", code="PROVIDER_ERROR")


def quoted(message: object) -> str:
    """Shorten a message of Codex to one line, without keys and stack traces."""
    text = _without_json(str(message or "no reason given")).partition("Stack backtrace")[0]
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\b(sk-|eyJ)[\w.*-]{6,}", "…", " ".join(text.split()))
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _without_json(text: str) -> str:
    """Replace the JSON body of the model server that Codex quotes by the sentence inside it."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        body, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return text
    sentence = _sentence(body)
    return f"{text[:start]}{sentence}{text[end:]}" if sentence else text


def _sentence(body: JSON) -> str:
    """Return the text of `{error: {message}}`, `{error}`, `{message}` or `{detail}`; else ""."""
    error = body.get("error")
    inner = error if isinstance(error, Mapping) else body
    texts = (inner.get("message"), inner.get("detail"), error)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _status(info: object) -> int | None:
    """Return the HTTP status in `{"httpConnectionFailed": {"httpStatusCode": 401}}` and similar."""
    if not isinstance(info, Mapping):
        return None
    for detail in info.values():
        status = detail.get("httpStatusCode") if isinstance(detail, Mapping) else None
        if isinstance(status, int):
            return status
    return None
