"""Refs of repositories that are ingested without a work tree: `PATH@REF`."""

import os
from dataclasses import replace
from pathlib import Path

from apps.core.errors import InvalidInput
from apps.core.values.surrogates import has_surrogates
from apps.index.models import Clone, Root
from apps.ingest import folders
from apps.ingest.discovery.own_data import is_clone
from apps.ingest.remote.address import RemoteAddress, check_ref, is_remote, of_folder, read
from apps.ingest.remote.clones import path_of

# Of the `@` in a path, so many are looked at, the last ones.
MAX_ATS = 4


def address_of(path: str) -> RemoteAddress | None:
    """Return the address that a URL, or `PATH@REF`, stands for; None for a folder. A ref of a
    repository that was fetched by URL is fetched from there. Raises InvalidInput URL_REFUSED."""
    if is_remote(path):
        return read(path)
    folder, ref = _split(path)
    return address_of_ref(folder, ref) if ref else None


def address_of_ref(folder: str, ref: str) -> RemoteAddress:
    """Return the address of a ref of the repository in a folder. Raises as `address_of`."""
    if clone := Clone.objects.filter(path=folder).first():
        return read(str(replace(read(clone.url), ref=check_ref(ref))))
    return of_folder(folder, ref)


def is_fetched(path: str) -> bool:
    """Whether `address_of` takes a text for an address."""
    return is_remote(path) or bool(_split(path)[1])


def names_of(remote: RemoteAddress) -> tuple[str, ...]:
    """Return names for the repository at an address, the best one first. A ref of a repository that
    is ingested is called after it."""
    if not remote.ref:
        return remote.names
    folder = remote.path if remote.scheme == "file" else path_of(replace(remote, ref=""))
    known = Root.objects.filter(path=folder).values_list("name", flat=True).first()
    return (f"{known}@{remote.label}", *remote.names) if known else remote.names


def _split(path: str) -> tuple[str, str]:
    """Return the folder of `PATH@REF`, a real path, and the ref; path and "" for any other text.

    The longest part before an `@` that is a folder counts: a folder whose name has an `@` comes
    before a ref. Folders outside the bases are not looked at.
    """
    if "@" not in path or has_surrogates(path):
        return path, ""
    parts = path.rsplit("@", MAX_ATS)
    for count in range(len(parts), 0, -1):
        folder, ref = "@".join(parts[:count]), "@".join(parts[count:])
        if folder.endswith("/") and ref:
            continue
        try:
            real = folder if is_clone(Path(folder)) else folders.real_path(folder)
        except InvalidInput:
            continue
        if os.path.isdir(real):
            return (str(real), ref) if ref else (path, "")
    return path, ""
