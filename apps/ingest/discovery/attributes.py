"""Reads from `.gitattributes` which files are vendored or generated, as GitHub's linguist does
(https://github.com/github-linguist/linguist)."""

from dataclasses import dataclass
from io import BytesIO

from dulwich.attrs import parse_git_attributes

from apps.ingest.discovery.gitignore import Patterns

NAME = ".gitattributes"
REASONS = {
    "linguist-vendored": f"Vendored: {NAME}",
    "linguist-generated": f"Generated: {NAME}",
}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What the `.gitattributes` files that apply to a folder say: attribute → patterns. A pattern
    that starts with `!` unsets the attribute."""

    patterns: dict[str, Patterns]

    def reason(self, path: str) -> str | None:
        """Return why a file is left out; "" if it is not vendored nor generated, None if the files
        say nothing about it. `path` as for `Patterns`."""
        values = {
            attribute: patterns.matches(path, is_folder=False)
            for attribute, patterns in self.patterns.items()
        }
        reasons = [REASONS[attribute] for attribute, value in values.items() if value]
        if reasons:
            return reasons[0]
        return "" if False in values.values() else None


def add_attributes(folder: str, content: bytes, above: Attributes | None) -> Attributes | None:
    """Return the attributes of `folder`, with the content of its own file. `folder` as for
    `Patterns`."""
    patterns = dict(above.patterns) if above else {}
    for attribute in REASONS:
        lines = _lines(content, attribute)
        if lines:
            patterns[attribute] = Patterns(folder, lines, patterns.get(attribute), NAME)
    return Attributes(patterns) if patterns else None


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
