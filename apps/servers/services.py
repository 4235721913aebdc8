"""Which server is in force, and saving one.

The environment comes before what was saved on a page. The row is read for each request, so a change
applies at once in every process. A saved key is sent only to the address that it was saved with.
"""

import logging
from dataclasses import replace
from typing import Literal

from channels.db import database_sync_to_async
from django.db import DatabaseError

from apps.core.errors import InvalidInput
from apps.core.security.encryption import decrypt, encrypt
from apps.logs.redaction import redact_from_now_on
from apps.servers.kinds import Kind
from apps.servers.models import SavedServer
from apps.servers.types import Server

log = logging.getLogger("codeinfo.servers")

MAX_ADDRESS = 300
KeyState = Literal["none", "saved", "unreadable", "environment"]


def current(kind: Kind) -> Server:
    """Return the server in force; its address is "" if there is none. Without a database, that of
    the environment."""
    environment = kind.environment()
    row = None if environment.is_complete else _row(kind)
    is_saved = row is not None and not environment.is_address_set
    address = row.address if row and is_saved else environment.address
    key = environment.key if environment.is_key_set else _key_of(row, address)
    return Server(kind.id, address, key or "", is_saved, is_unreadable=key is None)


async def current_async(kind: Kind) -> Server:
    """As `current`, from a coroutine."""
    # A read need not wait for the one thread that Django's writes share.
    read = database_sync_to_async(current, thread_sensitive=False)
    server: Server = await read(kind)
    return server


def key_state(kind: Kind, server: Server) -> KeyState:
    """Where the key of the server in force is."""
    if kind.environment().is_key_set:
        return "environment" if server.key else "none"
    if server.is_unreadable:
        return "unreadable"
    return "saved" if server.key else "none"


def typed(kind: Kind, address: str, key: str) -> Server:
    """Return the server of the fields of a form, to ask it without saving it.

    What the environment sets takes the place of a field. Raises InvalidInput (INVALID_BASE_URL,
    INVALID_KEY).
    """
    environment, used = kind.environment(), current(kind)
    if environment.is_complete:
        return used
    server = _entered(kind, address, key)
    if environment.is_key_set:
        server = replace(server, key=environment.key if server.address == used.address else "")
    return server


def save(kind: Kind, address: str, key: str = "") -> None:
    """Save a server. It need not answer: it may start later. A blank key is the saved one if the
    address is the saved one.

    Raises InvalidInput (INVALID_BASE_URL, INVALID_KEY, or SET_BY_ENVIRONMENT for an address that
    the environment overrides).
    """
    server, environment = _entered(kind, address, key), kind.environment()
    is_other = environment.is_address_set and server.address != environment.address
    if is_other or environment.is_complete:
        raise InvalidInput(
            f"{kind.address_variable} sets the address where codeinfo runs, so it cannot be "
            "changed here.",
            code="SET_BY_ENVIRONMENT",
        )
    values = {"address": server.address, "key": encrypt(server.key)}
    SavedServer.objects.update_or_create(kind=kind.id, defaults=values)
    log.info("server saved", extra={"context": {"kind": kind.id, "baseUrl": server.origin}})


def forget(kind: Kind) -> None:
    """Delete the saved server and its key."""
    SavedServer.objects.filter(kind=kind.id).delete()
    log.info("server removed", extra={"context": {"kind": kind.id}})


def is_saved(kind: Kind) -> bool:
    """Whether a server is saved, in force or not."""
    return _row(kind) is not None


def parse_address(kind: Kind, text: str) -> str:
    """Return an address in canonical form. Raises InvalidInput (INVALID_BASE_URL) that says what is
    wrong."""
    text = text.strip()
    try:
        if len(text) > MAX_ADDRESS:
            raise ValueError(f"must have at most {MAX_ADDRESS} characters")
        return kind.parse_address(text)
    except ValueError as error:
        raise InvalidInput(
            f"The address {error}.", code="INVALID_BASE_URL", details={"baseUrl": text}
        ) from None


def _entered(kind: Kind, address: str, key: str) -> Server:
    address, key = parse_address(kind, address), key.strip()
    try:
        key = key and kind.parse_key(key)
    except ValueError as error:
        raise InvalidInput(f"The {kind.key_name} {error}.", code="INVALID_KEY") from None
    redact_from_now_on(key)
    return Server(kind.id, address, key or _key_of(_row(kind), address) or "", is_saved=True)


def _key_of(row: SavedServer | None, address: str) -> str | None:
    """The key that was saved with this address; "" if there is none, None if it is unreadable."""
    if row is None or row.address != address:
        return ""
    key = decrypt(row.key)
    redact_from_now_on(key or "")
    return key


def _row(kind: Kind) -> SavedServer | None:
    try:
        return SavedServer.objects.filter(kind=kind.id).first()
    except DatabaseError:
        return None
