"""Plans and makes the changes of `codeinfo install` and `uninstall`.

For each client, the data folder has a record of what was written, and of what was there before.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeinfo_cli.clients import files, jsonc, texts, toml, yaml
from codeinfo_cli.clients.client import NAME, Client, Machine
from codeinfo_cli.clients.files import Change, Refused
from codeinfo_cli.clients.jsonc import UNSAFE, Damaged
from codeinfo_cli.clients.launch import Launch

BOM = "\ufeff"
FORMATS: dict[str, Any] = {"TOML": toml, "YAML": yaml}
Edit = Callable[[str], str | None]


def entry_of(client: Client, machine: Machine) -> Any:
    """Return the entry for codeinfo in the client's configuration; None if there is none.

    Raises Refused.
    """
    path = client.config(machine)
    _, content = files.read(path)
    document = _understood(path, lambda text: _format(client).loads(text), content)
    servers = document.get(client.key) if isinstance(document, dict) else None
    return servers.get(NAME) if isinstance(servers, dict) else None


def plan_install(client: Client, machine: Machine, launch: Launch) -> list[Change]:
    """Return the changes that add codeinfo; none if it is there. Raises Refused."""
    entry = client.entry(launch)

    def edit(text: str) -> str:
        form = _format(client)
        before = form.loads(text)
        after = form.with_member(text, client.key, NAME, entry)
        held = before.get(client.key, {})
        if form.loads(after) != before | {client.key: held | {NAME: entry}}:
            raise Damaged(UNSAFE)
        return text if held.get(NAME) == entry else after

    changes = [_change(client.config(machine), edit)]
    if client.instructions:
        path = client.instructions_on(machine)
        changes.append(_change(path, lambda text: texts.with_instructions(client, text)))
    return _checked(changes)


def plan_uninstall(client: Client, machine: Machine, data: Path) -> list[Change]:
    """Return the changes that restore the files, or remove our entry from files that were edited
    since. Raises Refused."""
    record = _record(data, client)
    changes = [_restored(client.config(machine), record, lambda text: _without(client, text))]
    if client.instructions:
        path = client.instructions_on(machine)
        is_section = client.instructions.kind == "section"
        # A file of ours that the user has edited is left to the user.
        edit: Edit = texts.without_section if is_section else _own_file(client)
        changes.append(_restored(path, record, edit))
    return _checked(changes)


def _own_file(client: Client) -> Edit:
    return lambda text: None if text == texts.with_instructions(client, "") else text


def _without(client: Client, text: str) -> str:
    form = _format(client)
    before = form.loads(text)
    after: str = form.without_member(text, client.key, NAME)
    held = before.get(client.key)
    if isinstance(held, dict):
        before[client.key] = {name: one for name, one in held.items() if name != NAME}
    left = form.loads(after)
    # TOML has no empty tables that are not written.
    if left != before and left | {client.key: {}} != before:
        raise Damaged(UNSAFE)
    return after


def _restored(path: Path, record: dict[str, Any], edit: Edit) -> Change:
    target, content = files.read(path)
    known = record.get(str(path))
    if isinstance(known, dict) and content is not None and known.get("after") == _hash(content):
        with suppress(KeyError, TypeError, ValueError, binascii.Error):
            kept = known["before"]
            original = None if kept is None else base64.b64decode(kept, validate=True)
            return Change(path, target, content, original)
    if content is None:
        return Change(path, target, None, None)
    return _change(path, edit)


def make(changes: Sequence[Change], client: Client, data: Path, *, removes: bool = False) -> None:
    """Write the changes, and the record for `uninstall`. Raises Refused."""
    record = _record(data, client)
    for change in changes:
        if removes:
            files.write(change)
            continue
        key = str(change.path)
        known = record.get(key)
        if isinstance(known, dict) and known.get("after") == _hash(change.before or b""):
            known = known | {"after": _hash(change.after or b"")}  # the original stays the same
        else:
            before = change.before
            known = {
                "before": None if before is None else base64.b64encode(before).decode(),
                "after": _hash(change.after or b""),
                "folders": [str(folder) for folder in files.missing_folders(change)],
            }
        record[key] = known
        # The original is kept before the file changes: the disk may be full.
        _write_record(data, client, record)
        files.write(change)
    if removes:
        _remove_folders(record)
        _write_record(data, client, {})


def _remove_folders(record: dict[str, Any]) -> None:
    """Remove the folders that `install` created, if they are empty."""
    lists = (known.get("folders") for known in record.values() if isinstance(known, dict))
    folders = {str(folder) for listed in lists if isinstance(listed, list) for folder in listed}
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            Path(folder).rmdir()


def _format(client: Client) -> Any:
    return FORMATS.get(client.format, jsonc)


def _change(path: Path, edit: Edit) -> Change:
    target, content = files.read(path)
    after = _understood(path, edit, content)
    bom = BOM.encode() if content and content.startswith(BOM.encode()) else b""
    return Change(path, target, content, None if after is None else bom + after.encode())


def _understood(path: Path, read: Callable[[str], Any], content: bytes | None) -> Any:
    try:
        return read((content or b"").decode().removeprefix(BOM))
    except UnicodeDecodeError:
        raise Refused(f"{path} is not text in UTF-8. It was left as it is.") from None
    except Damaged as error:
        raise Refused(f"{path} is damaged: {error}. It was left as it is.") from None


def _checked(changes: list[Change]) -> list[Change]:
    """Leave out changes that change nothing. Raises Refused before anything is written."""
    real = [change for change in changes if change.before != change.after]
    for change in real:
        files.check_writable(change)
    return real


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _path_of_record(data: Path, client: Client) -> Path:
    return data / "clients" / f"{client.id}.json"


def _record(data: Path, client: Client) -> dict[str, Any]:
    """Return what was written: path → hash, original and created folders. {} if that is unknown."""
    try:
        record = json.loads(_path_of_record(data, client).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(data: Path, client: Client, record: dict[str, Any]) -> None:
    path = _path_of_record(data, client)
    try:
        if not record:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{path.parent} cannot be written: {error.strerror}.") from None
    target, before = files.read(path)
    files.write(Change(path, target, before, json.dumps(record).encode()))
