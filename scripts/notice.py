"""Write NOTICE: the licences of what the wheel carries and brings.

    python scripts/notice.py

The names come from requirements*.txt, `apps/code/languages.py` and the tables below, the licences
from the metadata of the installed packages. Package metadata does not say what is compiled or
copied into a package; PARTS does, for each package with such files. Versions are left out: those
of a checkout are in requirements*.txt, the wheel takes ranges.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

from apps.code.languages import FILE_TYPES  # noqa: E402 - the path is set above

FILES = {
    "": "requirements.txt",
    "codex": "requirements-codex.txt",
    "mongodb": "requirements-mongodb.txt",
    "scale": "requirements-scale.txt",
}
GRAMMARS = "tree-sitter-language-pack"
# Grammar → the one of the pack's list that it is a dialect of.
DIALECTS = {"terraform": "hcl", "razor": "csharp"}
# Licences of packages that are installed on other systems only, or whose metadata has none.
LICENCES = {
    "async-timeout": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "quickjs-ng": "MIT",
    "six": "MIT",
    "u-msgpack-python": "MIT",
}
RUST = "Rust crates (MIT OR Apache-2.0)"
# Package → parts of others in it. "": compiled from its own source only.
PARTS = {
    "aiohttp": "llhttp (MIT)",
    "autobahn": "FlatBuffers (Apache-2.0)",
    "bcrypt": RUST,
    "brotli": "",
    "cbor2": "",
    "cffi": "libffi (MIT)",
    "charset-normalizer": "",
    "chromadb": f"SQLite (public domain), hnswlib (Apache-2.0), {RUST}",
    "cryptography": f"OpenSSL (Apache-2.0), {RUST}",
    "django": "jQuery, Select2, XRegExp (MIT)",
    "django-htmx": "htmx (0BSD)",
    "djangorestframework": "Bootstrap, jQuery, Prettify (MIT, Apache-2.0)",
    "drf-spectacular-sidecar": "Swagger UI (Apache-2.0), Redoc (MIT)",
    "dulwich": RUST,
    "frozenlist": "",
    "google-re2": "RE2 (BSD-3-Clause), Abseil (Apache-2.0)",
    "grpcio": "BoringSSL (Apache-2.0, OpenSSL), c-ares (MIT), zlib (Zlib), RE2, Abseil",
    "hf-xet": RUST,
    "httptools": "llhttp, http-parser (MIT)",
    "jiter": RUST,
    "mermaidx": "Mermaid, D3, Cytoscape, KaTeX (MIT, ISC), DOMPurify (MPL-2.0 OR Apache-2.0), "
    "DejaVu fonts (Bitstream Vera)",
    "mmh3": "",
    "msgpack": "",
    "msgspec": "",
    "multidict": "",
    "nh3": f"ammonia, html5ever, {RUST}",
    "novasvg": "",
    "numpy": "OpenBLAS, LAPACK (BSD-3-Clause), GCC's runtime libraries (GPL-3.0 with the exception "
    "for such use)",
    "onnxruntime": "the parts that its ThirdPartyNotices.txt lists",
    "openai-codex-cli-bin": "Codex (Apache-2.0), bubblewrap (LGPL-2.0-or-later), ripgrep "
    "(Unlicense OR MIT)",
    "orjson": RUST,
    "propcache": "",
    "protobuf": "upb, utf8_range (BSD-3-Clause)",
    "psycopg-binary": "libpq (PostgreSQL), OpenSSL (Apache-2.0), Kerberos (MIT), OpenLDAP "
    "(OLDAP-2.8), Cyrus SASL (BSD-4-Clause), libxcrypt and keyutils (LGPL-2.1)",
    "pybase64": "libbase64 (BSD-2-Clause)",
    "pydantic-core": RUST,
    "pymongo": "",
    "pyyaml": "libyaml (MIT)",
    "quickjs-ng": "QuickJS-ng (MIT)",
    "rpds-py": RUST,
    "simsimd": "GCC's OpenMP library (GPL-3.0 with the exception for such use)",
    "tokenizers": f"Oniguruma (BSD-2-Clause), {RUST}",
    "tree-sitter": "the library tree-sitter (MIT), parts of ICU (Unicode-3.0)",
    "tree-sitter-c-sharp": "",
    "tree-sitter-embedded-template": "",
    GRAMMARS: "the grammars listed below",
    "tree-sitter-yaml": "",
    "twisted": "",
    "ujson": "double-conversion (BSD-3-Clause)",
    "uvloop": "libuv (MIT)",
    "watchfiles": RUST,
    "wcwidth": "",
    "websockets": "",
    "yarl": "",
    "zope-interface": "",
    "zstandard": "Zstandard (BSD-3-Clause)",
}
COMPILED = re.compile(
    r"\.(so|pyd|dylib|dll)(\.|$)|(\.min|bundle|standalone|mermaid)\.js$|/bin/codex$"
)
PACKED = re.compile(r"^- \[(\w+)[/\w]*\]\((\S+)\) - (.+?)(?: License)?$", re.M)
OPENING = """\
NOTICE: licences of codeinfo and of what it carries and brings.
Made by `python scripts/notice.py`: licences are those that the packages declare; what is compiled
or copied into a package is listed by hand. The full texts are in the packages, and at their
projects.

codeinfo: MIT (LICENSE).

In the wheel itself

  apps/embedding/data (weights and vocabulary of the built-in embedder): MIT, as codeinfo. Trained
  by `training/` on source of public packages whose licences are permissive (training/licences.py,
  training/manifest.tsv).
"""


def pinned(file: str) -> set[str]:
    """Return the names of the packages that a requirements*.txt pins."""
    return set(re.findall(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==", (HOME / file).read_text(), re.M))


def find(name: str) -> Distribution | None:
    """Return an installed package."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence_of(name: str) -> str:
    """Return the licence that a package declares. Raises SystemExit if it declares none."""
    if name in LICENCES:
        return LICENCES[name]
    if (found := find(name)) is None:
        raise SystemExit(f"{name} is not installed: add its licence to LICENCES")
    metadata = found.metadata
    text = metadata.get("License-Expression") or metadata.get("License") or ""
    if text and "\n" not in text and len(text) < 60:
        return " ".join(text.split())
    classifiers = metadata.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    if not named:
        raise SystemExit(f"{name} declares no licence: add it to LICENCES")
    return " OR ".join(named)


def has_compiled_files(name: str) -> bool:
    """Return True if a package has compiled code, or scripts of others."""
    found = find(name)
    return found is not None and any(COMPILED.search(str(file)) for file in found.files or ())


def packages(names: set[str]) -> Iterator[str]:
    """Yield a line for each package. Raises SystemExit if the parts of one are unknown."""
    for name in sorted(names):
        if has_compiled_files(name) and name not in PARTS:
            raise SystemExit(f"{name} has compiled files: say in PARTS what is in them")
        parts = PARTS.get(name, "")
        yield f"  {name}: {licence_of(name)}{f'. In it: {parts}' if parts else ''}"


def grammars() -> Iterator[str]:
    """Yield a line for each grammar. Raises SystemExit if the licence of one is unknown."""
    pack = find(GRAMMARS)
    text = pack.metadata.get_payload() if pack else ""
    packed = {name: (url, licence) for name, url, licence in PACKED.findall(str(text))}
    for name in sorted({each.grammar for each in FILE_TYPES if each.grammar}):
        if (listed := DIALECTS.get(name, name)) not in packed:
            raise SystemExit(f"The licence of the grammar {name} is unknown.")
        url, licence = packed[listed]
        yield f"  {name}: {licence}, {url}"


def notice() -> str:
    """Return the text of NOTICE."""
    base = pinned(FILES[""])
    lines = [OPENING, "Packages that the wheel and its extra chroma depend on\n", *packages(base)]
    for extra, file in FILES.items():
        if extra:
            lines += [f"\nFurther packages of the extra {extra}\n", *packages(pinned(file) - base)]
    lines += [f"\nGrammars of {GRAMMARS} that codeinfo uses\n", *grammars()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HOME / "NOTICE").write_text(notice())
