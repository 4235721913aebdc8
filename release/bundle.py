"""Writes dist/codeinfo-VERSION.mcpb, a bundle for Claude Desktop and others: `make dist`.

The bundle has the wheel and a manifest; the client installs the wheel's dependencies with uv
(github.com/anthropics/mcpb, server type "uv").
"""

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "mcpb"
FILES = ("manifest.json", "server/main.py")
# The oldest time that a zip file can have: equal sources give equal bytes.
TIME = (1980, 1, 1, 0, 0, 0)


def project(wheel: str) -> str:
    """Return the pyproject.toml of the bundle, which has `wheel` beside it."""
    return f"""\
[project]
name = "codeinfo-bundle"
version = "0"
requires-python = ">=3.11"
dependencies = ["codeinfo"]

[tool.uv]
package = false

[tool.uv.sources]
codeinfo = {{ path = "{wheel}" }}
"""


def write(wheel: Path) -> Path:
    """Write the bundle beside the wheel. Return its path."""
    version = wheel.name.split("-")[1]
    bundle = wheel.with_name(f"codeinfo-{version}.mcpb")
    contents = {name: (SOURCE / name).read_bytes() for name in FILES}
    contents["pyproject.toml"] = project(wheel.name).encode()
    contents[wheel.name] = wheel.read_bytes()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            # A wheel is compressed already.
            kind = zipfile.ZIP_STORED if name == wheel.name else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, kind)
    return bundle


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
