"""Translate errors of LM Studio's SDK to Unavailable: a sentence for the user, with `retryable`."""

import lmstudio

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.values.addresses import Address
from apps.lmstudio.errors import unavailable

MAX_QUOTED = 300


def to_unavailable(error: Exception, address: Address, token: str) -> Unavailable:
    """Return Unavailable for an error of the SDK, or for an error inside the SDK."""
    match error:
        case lmstudio.LMStudioModelNotFoundError():
            return unavailable(
                "LM Studio does not have this model: choose another one, or download it there.",
                retryable=False,
            )
        case lmstudio.LMStudioServerError() if str(error).startswith("Authentication failed"):
            return unavailable(_token_message(token), retryable=False)
        case lmstudio.LMStudioChannelClosedError() | lmstudio.LMStudioRuntimeError():
            return unavailable("LM Studio ended the answer before it was complete.")
        case lmstudio.LMStudioPredictionError() if "tool call request" in str(error):
            return unavailable("The model wrote a tool call that LM Studio could not read.")
        case lmstudio.LMStudioServerError():
            return unavailable(f"LM Studio failed: {_server_message(error, token)}")
        case lmstudio.LMStudioWebsocketError():
            return unavailable(f"The connection to LM Studio at {address} failed or was cut.")
        case _:
            return unavailable("LM Studio sent something that this version does not understand.")


def _token_message(token: str) -> str:
    if token and token == config().lmstudio_api_token:
        return "LM Studio refused the API token: check CODEINFO_LMSTUDIO_API_TOKEN."
    if token:
        return "LM Studio refused the API token: correct it on the LM Studio page."
    return (
        "LM Studio asks for an API token: make one in its server settings and enter it on the "
        "LM Studio page, or turn off “Require Authentication” there."
    )


def _server_message(error: lmstudio.LMStudioServerError, token: str) -> str:
    """Return the server's message: shortened, on one line, and without the token."""
    details = error.server_error
    parts = [details.title, details.cause, details.suggestion] if details else [str(error)]
    text = " ".join(" ".join(part for part in parts if part).split()) or "it gave no reason"
    if token:
        for secret in (token, *token.removeprefix("sk-lm-").split(":")):
            text = text.replace(secret, "…")
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
