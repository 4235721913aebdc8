"""Serves static files in front of Django, from memory.

Names have a hash of the content, and browsers keep such files for good. Each use of a file checks
its time and size on the disk, so that an edited checkout is never stale and nothing is built before
a start. Our modules and stylesheets are joined (joined_files.py). Files are compressed when they
are first requested.

Not by ManifestStaticFilesStorage: its folder of collected files would be stale after an edit, and
its modules would still be a request each.
"""

import asyncio
import gzip
import mimetypes
import os
import re
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from posixpath import dirname, join, normpath, splitext
from typing import Any

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousFileOperation
from django.utils.http import parse_etags

from apps.core.http import joined_files
from apps.core.http.ports import Application

HASHED = re.compile(r"^(.+)\.([0-9a-f]{12})(\.\w+)$")
# What a stylesheet names beside itself; not data: or a part of the page.
LINKED = re.compile(r"""url\(["']?([\w./-]+)["']?\)""")
# The machine's table of types may lack these, or have others.
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
TEXTS = ("text/", "image/svg+xml", "application/json")
# The best quality takes .1 s for 50 kB, and 5 s for the 1.6 MB of the API's documentation.
BEST, FAST, LARGE = 11, 9, 1 << 18

Stat = tuple[int, int]


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served.

    sources: what it was made of, with its time and size.
    compressed: the body by its encoding, "br" or "gzip".
    """

    body: bytes
    type: str
    sources: dict[Path, Stat]
    compressed: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def hash(self) -> str:
        return sha256(self.body).hexdigest()[:12]

    def is_current(self) -> bool:
        return all(_stat(path) == stat for path, stat in self.sources.items())

    def compress(self, encoding: str) -> None:
        quality = BEST if len(self.body) < LARGE else FAST
        self.compressed[encoding] = (
            brotli.compress(self.body, quality=quality)
            if encoding == "br"
            else gzip.compress(self.body)
        )


class StaticFiles:
    """The files of the project and its apps, by their names below STATIC_URL."""

    def __init__(self) -> None:
        self._known: dict[str, StaticFile] = {}  # only names that exist, so it is bounded

    def get(self, name: str) -> StaticFile | None:
        """Return a file as it is on the disk now; None if it is not there."""
        known = self._known.get(name)
        if known is None or not known.is_current():
            try:
                known = self._known[name] = self._read(name)
            except FileNotFoundError:
                self._known.pop(name, None)
                return None
        return known

    def requested(self, name: str) -> tuple[StaticFile | None, bool]:
        """Return the file of a name with a hash or without one, and whether the hash is its own.

        A page that was loaded before an edit gets the file that is there now.
        """
        if found := HASHED.match(name):
            file = self.get(found[1] + found[3])
            return file, file is not None and file.hash == found[2]
        return self.get(name), False

    def name_with_hash(self, name: str) -> str:
        """Return `name` if there is no such file."""
        file = self.get(name)
        root, extension = splitext(name)
        return name if file is None else f"{root}.{file.hash}{extension}"

    def _read(self, name: str) -> StaticFile:
        sources: dict[Path, Stat] = {}

        @cache
        def read(other: str) -> str:
            path = _find(other)
            sources[path] = _stat(path)
            text = path.read_text("utf-8")
            return LINKED.sub(partial(linked, other), text) if path.suffix == ".css" else text

        def address(other: str) -> str:
            if file := self.get(other):
                sources.update(file.sources)
            return settings.STATIC_URL + self.name_with_hash(other)

        def linked(sheet: str, found: re.Match[str]) -> str:
            other = normpath(join(dirname(sheet), found[1]))
            return f'url("{address(other)}")' if self.get(other) else found[0]

        path = _find(name)
        # Files of packages stay as they are.
        is_ours = path.is_relative_to(settings.STATICFILES_DIRS[0])
        if is_ours and path.suffix == ".js":
            body = joined_files.script(name, read, address).encode()
        elif path.suffix == ".css":
            body = (joined_files.sheet(name, read) if is_ours else read(name)).encode()
        else:
            sources[path] = _stat(path)
            body = path.read_bytes()
        kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        return StaticFile(body, kind or "application/octet-stream", sources)


def _find(name: str) -> Path:
    """Raises FileNotFoundError."""
    try:
        found = finders.find(name) if normpath(name) == name else None
    except SuspiciousFileOperation:
        found = None
    if not found or not os.path.isfile(found):
        raise FileNotFoundError(name)
    return Path(found)


def _stat(path: Path) -> Stat:
    """Return the time in nanoseconds and the size in bytes; (0, 0) if it cannot be had."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


static_files = StaticFiles()


class HashedNames(StaticFilesStorage):
    """What `{% static %}` asks for addresses."""

    def url(self, name: str | None) -> str:
        return super().url(static_files.name_with_hash(name or ""))


class WithStaticFiles:
    """Serves static files. Passes on all other requests."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        file, is_forever = None, False
        if scope["path"].startswith(settings.STATIC_URL):
            name = scope["path"].removeprefix(settings.STATIC_URL)
            file, is_forever = static_files.requested(name)
        if file is None:
            await self.app(scope, receive, send)
            return
        status, headers, body = await _response(file, scope, is_forever)
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})


async def _response(
    file: StaticFile, scope: dict[str, Any], is_forever: bool
) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body."""
    if scope["method"] not in ("GET", "HEAD"):
        return 405, {"allow": "GET, HEAD", "content-length": "0"}, b""
    given = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if is_forever else "no-cache",
        "content-type": file.type,
        "x-content-type-options": "nosniff",
    }
    tag, body = file.hash, file.body
    if file.type.startswith(TEXTS):
        headers["content-type"] += "; charset=utf-8"
        headers["vary"] = "Accept-Encoding"
        accepted = _accepted(given.get(b"accept-encoding", ""))
        encoding = next((one for one in ("br", "gzip") if one in accepted), "")
        if encoding:
            headers["content-encoding"] = encoding
            tag += f"-{encoding}"
            if encoding not in file.compressed:
                await asyncio.to_thread(file.compress, encoding)
            body = file.compressed[encoding]
    headers["etag"] = f'"{tag}"'
    known = parse_etags(given.get(b"if-none-match", ""))
    if headers["etag"] in (one.removeprefix("W/") for one in known):
        return 304, headers, b""
    headers["content-length"] = str(len(body))
    return 200, headers, body if scope["method"] == "GET" else b""


def _accepted(header: str) -> set[str]:
    """Return the encodings that Accept-Encoding names, without those of weight 0."""
    named = (one.partition(";") for one in header.lower().split(","))
    return {
        name.strip()
        for name, _, weight in named
        if not weight or weight.strip().removeprefix("q=").strip("0.")
    }
