"""The token of this server process, with which the `codeinfo` command calls it.

It is new at each start, and is in `server.json` in the data folder, which only the user who runs
codeinfo can read. It serves every route, besides the tokens that are configured.
"""

import secrets
from functools import cache


@cache
def server_token() -> str:
    """Return the token of this process."""
    return secrets.token_urlsafe(32)
