"""Reads where a client works, from the headers of its request.

`codeinfo mcp` sends the folder in which it was started, or the client's roots. Other clients may
send the header, too, to choose among the ingested repositories.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from apps.core.config import config
from apps.core.security.authentication import is_of_server_file
from apps.mcp.types import Workspace

# Folders or ids, percent-encoded, with commas between them.
FOLDERS = "Codeinfo-Workspace"
# Whether a folder may be ingested: auto, ask or yes.
CONSENT = "Codeinfo-Workspace-Ingest"
MAX_FOLDERS, MAX_LENGTH = 20, 4_096
_URI = re.compile(r"(?i)file:(?://(?:localhost)?)?(?=/)")


def workspace_of(headers: Mapping[str, str]) -> Workspace:
    """Return where a client works; nothing if CODEINFO_MCP_WORKSPACE is off."""
    mode, consent = config().mcp_workspace, headers.get(CONSENT, "auto").strip().lower()
    if mode == "off":
        return Workspace()
    texts = headers.get(FOLDERS, "").split(",")[:MAX_FOLDERS]
    folders = dict.fromkeys(_URI.sub("", unquote(text.strip()), count=1) for text in texts)
    usable = tuple(one for one in folders if 0 < len(one) <= MAX_LENGTH and "\0" not in one)
    if consent != "yes":
        consent = "auto" if mode == consent == "auto" else "ask"
    return Workspace(usable, is_of_server_file(headers.get("Authorization", "")), consent)
