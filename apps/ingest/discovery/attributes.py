"""Reads from `.gitattributes` which files are vendored or generated, as GitHub's linguist does
(https://github.com/github-linguist/linguist)."""

from collections.abc import Mapping
from io import BytesIO

from dulwich.attrs import parse_git_attributes

from apps.ingest.discovery.gitignore import Patterns

NAME = ".gitattributes"
REASONS = {
    "linguist-vendored": f"Vendored: {NAME}",
    "linguist-generated": f"Generated: {NAME}",
}


# What the `.gitattributes` files that apply to a folder say: attribute → patterns. A pattern that
# starts with `!` unsets the attribute.
Attributes = Mapping[str, Patterns]


def reason_of(attributes: Attributes, path: str) -> str | None:
    """Return why a file is left out; "" if it is not vendored nor generated, None if the files say
    nothing about it. `path` as for `Patterns`."""
    values = {name: one.matches(path, is_folder=False) for name, one in attributes.items()}
    reasons = (REASONS[name] for name, value in values.items() if value)
    return next(reasons, "" if False in values.values() else None)


def add_attributes(folder: str, content: bytes, above: Attributes) -> Attributes:
    """Return the attributes of `folder`, with the content of its own file. `folder` as for
    `Patterns`."""
    own = {
        name: Patterns(folder, lines, above.get(name), NAME)
        for name in REASONS
        if (lines := _lines(content, name))
    }
    return {**above, **own}


def _lines(content: bytes, attribute: str) -> bytes:
    """Return the lines about one attribute, as those of a `.gitignore` file."""
    name = attribute.encode()
    if name not in content:
        return b""
    lines = [
        (b"" if attributes[name] in (True, b"true") else b"!") + pattern
        for pattern, attributes in parse_git_attributes(BytesIO(content))
        # git does not allow the first, and C strings (the second) are for names with spaces.
        if name in attributes and not pattern.startswith((b"!", b'"'))
    ]
    return b"\n".join(lines)
