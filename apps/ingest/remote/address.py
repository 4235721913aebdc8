"""Reads the address of a repository: a URL, perhaps with `@` and a branch, tag or commit behind it.

The forms are those of https://git-scm.com/docs/git-clone#_git_urls, without the transports that are
not encrypted or run commands.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from apps.core.errors import InvalidInput
from apps.core.values.addresses import ascii_host

MAX_ADDRESS = 1_000
PORTS = {"https": 443, "ssh": 22}
FORMS = "https://HOST/PATH, ssh://USER@HOST/PATH, git@HOST:PATH or file:///PATH, perhaps with @REF"
# Other forms of git are recognized, so that their error says what may be used instead.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)")
_SCP = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9.-]+):([^/@:][^@]*|/[^@]+)(?:@(.+))?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_REF = re.compile(r"(?!-|@$)[^\s~^:?*\[\\{]+")
# What a ref keeps in an address. Another `@` would begin the ref.
_PLAIN = "!\"#$&'()+,/;<=>]`|}"


@dataclass(frozen=True)
class RemoteAddress:
    """Where a repository is fetched from.

    url: as git gets it
    ref: a branch, a tag or the id of a commit; "" for the default branch
    scheme: "https", "ssh" or "file"
    host, port: "" and 0 for a file
    path: decoded
    """

    url: str
    ref: str
    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        return f"{self.url}@{quote(self.ref, safe=_PLAIN)}" if self.ref else self.url

    @property
    def label(self) -> str:
        """The ref in a name, in which `/` is written `~`."""
        return self.ref.replace("/", "~")

    @property
    def names(self) -> tuple[str, ...]:
        """Names for the repository, from short to unmistakable: `flask`, `pallets/flask`, … With a
        ref `flask@3.0.x`."""
        parts = [part for part in self.path.split("/") if part not in ("", ".")]
        parts = [*filter(None, [self.host]), *parts]
        parts[-1] = parts[-1].removesuffix(".git") or parts[-1]
        ref = f"@{self.label}" if self.ref else ""
        return tuple("/".join(parts[-count:]) + ref for count in range(1, len(parts) + 1))


def is_remote(text: str) -> bool:
    """Whether a text is meant as the address of a repository, and not as a folder."""
    return bool(_URL.match(text) or _SCP.fullmatch(text))


def read(text: str) -> RemoteAddress:
    """Parse an address. Raises InvalidInput URL_REFUSED."""
    remote = _read(text)
    if len(str(remote)) > MAX_ADDRESS:
        raise refused(f"The address is longer than {MAX_ADDRESS} characters.")
    return remote


def of_folder(folder: str, ref: str) -> RemoteAddress:
    """Return the address of a ref of a repository of this machine. Raises as `read`.

    folder: its real path
    """
    address = RemoteAddress(f"file://{quote(folder)}", check_ref(ref), "file", "", 0, folder)
    return read(str(address))


def _read(text: str) -> RemoteAddress:
    if len(text) > MAX_ADDRESS or not text.isascii() or not text.isprintable() or " " in text:
        raise refused(f"The address is longer than {MAX_ADDRESS} characters, or no URL.")
    if match := _SCP.fullmatch(text):
        user, host, path, ref = match.groups(default="")
        ref = unquote(ref)
        _check(ref, path)
        host = _host(host)
        return RemoteAddress(f"{user}@{host}:{path}", ref, "ssh", host, PORTS["ssh"], path)
    scheme, _, rest = text.partition("://")
    if scheme not in ("https", "ssh", "file"):
        raise refused(f"Repositories are fetched from {FORMS}.")
    place, slash, path = rest.partition("/")
    path, ref = _split(path)
    # So that what a browser shows, and what it links to, is one repository.
    path = path.rstrip("/")
    _check(ref, path)
    if not path.strip("/."):
        raise refused(f"The address names no repository: {FORMS}.")
    if scheme == "file":
        if place:
            raise refused("A file:// address has three slashes: file:///PATH.")
        return RemoteAddress(f"file:///{path}", ref, scheme, "", 0, f"/{unquote(path)}")
    user, host, port = _place(scheme, place)
    shown = f"[{host}]" if ":" in host else host
    at = f"{user}@{shown}" if user else shown
    url = f"{scheme}://{at}{'' if port == PORTS[scheme] else f':{port}'}/{path}"
    return RemoteAddress(url, ref, scheme, host, port, unquote(path))


def refused(message: str) -> InvalidInput:
    return InvalidInput(message, code="URL_REFUSED")


def _split(path: str) -> tuple[str, str]:
    """Return the path of a URL, and the ref behind it, decoded. A segment may begin with `@`."""
    before, at, ref = path.rpartition("@")
    return (before, unquote(ref)) if at and before and not before.endswith("/") else (path, "")


def _check(ref: str, path: str) -> None:
    parts = PurePosixPath(unquote(path)).parts
    if "?" in path or "#" in path or "\\" in path or ".." in parts:
        raise refused("The path of the address must not have `?`, `#`, `\\` or `..`.")
    if not unquote(path).isprintable():
        raise refused("The path of the address has characters that cannot be shown.")
    check_ref(ref)


def check_ref(ref: str) -> str:
    """Return a branch, tag or commit; "" for none. Raises InvalidInput URL_REFUSED."""
    is_bad = ".." in ref or "//" in ref or ref.endswith(("/", ".", ".lock"))
    if ref and (is_bad or not ref.isprintable() or not _REF.fullmatch(ref)):
        raise refused(f"{ref[:100]!r} cannot be a branch, a tag or a commit.")
    return ref


def _place(scheme: str, place: str) -> tuple[str, str, int]:
    """Return user, host and port."""
    try:
        parts = urlsplit(f"{scheme}://{place}")
        port = parts.port
    except ValueError:
        raise refused("The address has no valid host and port.") from None
    user, at, _ = place.rpartition("@")
    if at and (scheme == "https" or not _USER.fullmatch(user)):
        raise refused(
            "The address must not hold a user name or password: CODEINFO_CLONE_TOKEN has tokens, "
            "and the helper of your git configuration is asked."
        )
    return user, _host(parts.hostname or ""), port or PORTS[scheme]


def _host(name: str) -> str:
    try:
        host = ascii_host(name.lower())
    except ValueError as error:
        raise refused(f"The host {str(error).partition(', ')[0]}.") from None
    if host.startswith("-"):
        raise refused("The host must not begin with a hyphen.")
    return host
