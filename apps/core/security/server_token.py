"""The token of this server process, with which the `codeinfo` command calls it; and the file of the
token that replaces those that are not configured.

The first is new at each start, and is in `server.json` in the data folder, which only the user who
runs codeinfo can read. It serves every route, besides the tokens that are configured.
"""

import secrets
from functools import cache

# In the data folder, if a login is required and other machines can connect (`codeinfo.settings`).
TOKEN_FILE = "access-token.txt"


@cache
def server_token() -> str:
    """Return the token of this process."""
    return secrets.token_urlsafe(32)
