"""Errors of verbs: a sentence for the user, and what to do next.

The exit status of a verb is OK; NOTHING if it found nothing, or what it checked is not so; FAILED
for wrong usage and errors, as with grep; or INTERRUPTED after Ctrl-C.
"""

import json
from collections.abc import Mapping
from typing import Any

OK, NOTHING, FAILED, INTERRUPTED = 0, 1, 2, 130

# Code of an error → what to do.
NEXT_STEP = {
    "BAD_PATTERN": "-F looks for the text as it is.",
    "BUSY": "codeinfo status shows what is in progress; try again when it has ended.",
    "DISK_FULL": "Make room on the disk, then try again.",
    "FILE_NOT_FOUND": "codeinfo ls shows the ingested files; codeinfo ingest reads new ones.",
    "INGEST_REQUIRED": "Ingest a folder first: codeinfo ingest PATH",
    "MODEL_LOCKED": "Leave out --model: all repositories have the same one.",
    "NAME_TAKEN": "Choose another name: codeinfo ingest PATH --name NAME",
    "PROVIDER_UNAVAILABLE": "codeinfo status shows the providers; --provider chooses another.",
    "REPO_NOT_FOUND": "codeinfo repos lists the repositories.",
    "UNAUTHORIZED": "The server was replaced meanwhile: try again.",
    "UNSUPPORTED_PROVIDER": "codeinfo status shows the providers.",
}
# Codes that the search routes send without a message.
SENTENCES = {
    "CHROMA_UNAVAILABLE": "The index cannot be read, or Chroma does not answer.",
    "EMBED_MODEL_MISSING": "The embedding model of the index cannot be loaded.",
    "INGEST_REQUIRED": "Nothing is ingested yet.",
    "REPO_NOT_FOUND": "There is no such repository.",
    "archived": "The conversation is archived.",
}


class CliError(Exception):
    """A verb cannot do what it was asked.

    message: a sentence
    code: for programs
    next_step: what the user can do; "" if it is in the message
    body: the server's own JSON, which `--json` writes unchanged; None if it is not the server's
    """

    def __init__(
        self,
        message: str,
        code: str = "ERROR",
        *,
        next_step: str = "",
        status: int = FAILED,
        body: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.next_step = next_step or NEXT_STEP.get(code, "")
        self.status = status
        self.body = body

    def as_json(self) -> bytes:
        """Return the server's body, or one of the same form as the API's."""
        if self.body is not None:
            return self.body
        fields = {"status": "error", "code": self.code, "message": self.message}
        return json.dumps(fields).encode()


def of_response(status: int, body: bytes) -> CliError:
    """Return the error that the server answered with; docs/api.md lists the forms."""
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return CliError(f"The server answered with HTTP status {status}.", "SERVER_ERROR")
    code = str(fields.get("code") or fields.get("error") or "SERVER_ERROR")
    message = _sentence(code, fields)
    next_step = ""
    if seconds := fields.get("retryAfter"):
        next_step = f"Try again in {seconds} s."
    return CliError(message, code, next_step=next_step, body=body)


def _sentence(code: str, fields: Mapping[str, Any]) -> str:
    details = fields.get("details")
    if isinstance(details, list):
        return "; ".join(map(str, details))
    message = fields.get("message") or fields.get("reason") or SENTENCES.get(code) or code
    return str(message).removeprefix(f"{code}: ")
