"""Write the manifest from downloaded archives: `python -m training pin FOLDER`.

FOLDER has pypi/, npm/, deb/ and deb-src/ with the downloads of the registry clients (`pip download
--no-deps`, `npm pack`, `apt-get download`, `apt-get source --download-only`). The manifest has the
packages with a permissive licence, and under any licence the packages that an evaluation uses, to
exclude what resembles them.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from training import archives
from training.exclusions import is_never
from training.licences import DebianCopyright, is_permissive, of_npm, of_wheel
from training.manifest import Kind, Package, Role
from training.metadata import npm_description, source_rules, wheel_metadata
from training.word_pieces import MODEL, PIECES

# Searched to judge a training, in several languages; chosen by hand, never looked at by training.
DEVELOP = frozenset(
    """
    anyio cherrypy docker gunicorn mistune paramiko parsel peewee pip prompt-toolkit tornado trio
    twisted w3lib bluebird bookshelf commander d3-array d3-scale immutable knex koa luxon mobx mocha
    moment rxjs shelljs winston yargs
    golang-github-gorilla-mux-dev golang-github-labstack-echo-dev golang-github-urfave-cli-dev
    librust-hyper-dev librust-clap-dev librust-bytes-dev ruby-grape ruby-faraday ruby-thor
    php-twig php-league-commonmark php-symfony-console lua-penlight libspdlog-dev libcli11-dev
    jsoup netty okio libjoda-time-java lighttpd libevent memcached scala-xml kotlinx-atomicfu
    haskell-conduit @capacitor/filesystem expo-file-system react-native-vision-camera mono-addins
    """.split()  # noqa: SIM905
)
START = frozenset({MODEL, PIECES})


def pinned(folder: Path) -> Iterator[Package]:
    """The rows of the manifest for the archives in a folder."""
    for kind in ("pypi", "npm", "deb"):
        for archive in sorted((folder / kind).iterdir()):
            name, version, licence = _READERS[kind](archive)
            row = _row(kind, name, version, licence, [archive])
            yield from row
    for description in sorted((folder / "deb-src").glob("*.dsc")):
        yield from _source(description)


def _row(kind: Kind, name: str, version: str, licence: str, parts: list[Path]) -> Iterator[Package]:
    role = _role(name)
    if role == "guard" or (licence and is_permissive(licence)):
        for part in parts:
            digest = hashlib.sha256(part.read_bytes()).hexdigest()
            stated = " ".join(licence.split())[:300] or "not stated"
            yield Package(role, kind, name, version, part.name, digest, stated)


def _role(name: str) -> Role:
    if name in START:
        return "start"
    if is_never(name):
        return "guard"
    return "develop" if name.lower() in DEVELOP else "train"


def _wheel(archive: Path) -> tuple[str, str, str]:
    metadata = wheel_metadata(archive)
    return str(metadata["Name"]), str(metadata["Version"]), of_wheel(metadata)


def _npm(archive: Path) -> tuple[str, str, str]:
    description = npm_description(archive)
    return description.get("name", ""), description.get("version", ""), of_npm(description)


def _deb(archive: Path) -> tuple[str, str, str]:
    name, version, _ = archive.name.split("_", 2)
    rules = next(
        (
            content.decode("utf-8", "replace")
            for _, content in archives.files(archive, _is_debian_copyright)
        ),
        "",
    )
    return name, unquote(version), DebianCopyright(rules).whole()


def _is_debian_copyright(path: str) -> bool:
    return re.fullmatch(r"usr/share/doc/[^/]+/copyright", path) is not None


_READERS = {"pypi": _wheel, "npm": _npm, "deb": _deb}


def _source(description: Path) -> Iterator[Package]:
    """The rows of a source package: its tarballs and that of the packaging, which has the
    licences."""
    text = description.read_text(encoding="utf-8", errors="replace")
    name = _field(text, "Source")
    parts = [
        description.parent / file
        for file in dict.fromkeys(re.findall(r"^ [0-9a-f]{64} \d+ (\S+)$", text, re.M))
    ]
    parts = [
        part for part in parts if part.exists() and ".tar." in part.name and part.suffix != ".asc"
    ]
    packaging = next((part for part in parts if ".debian.tar." in part.name), None)
    if packaging and len(parts) > 1:
        licences = DebianCopyright(source_rules(packaging))
        licence = licences.of("*") or licences.whole()
        yield from _row("deb-src", name, _field(text, "Version"), licence, parts)


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(\S+)", text, re.MULTILINE)
    return match.group(1) if match else ""
