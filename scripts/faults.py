"""Write docs/faults-index.md: each fault of docs/faults.md with the tests that show it.

    python scripts/faults.py

A test says with `@pytest.mark.fault("Vectors are lost")` which paragraphs of docs/faults.md it
shows; a paragraph is named by its heading.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs/faults.md"
INDEX = HOME / "docs/faults-index.md"
HEAD = """# Index of faults

Each fault of [faults.md](faults.md), and the tests that show it. `make fix` writes this page from
the tests (`scripts/faults.py`).
"""


def marks(file: Path) -> Iterator[tuple[str, str]]:
    """Fault and test, for each mark in `file`."""
    text = file.read_text()
    if "mark.fault(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr="fault"), args=faults):
                    for fault in faults:
                        yield ast.literal_eval(fault), node.name


def by_fault() -> dict[str, dict[str, list[str]]]:
    """Fault → file → its tests."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in sorted((HOME / "tests").rglob("test_*.py")):
        for fault, test in marks(file):
            tests = found.setdefault(fault, {}).setdefault(str(file.relative_to(HOME)), [])
            tests.append(test.removeprefix("test_").replace("_", " "))
    return found


def headings() -> list[str]:
    return re.findall(r"^##+ .+$", PAGE.read_text(), re.M)


def index() -> str:
    """The whole page, in the order of docs/faults.md."""
    tests, lines, part = by_fault(), [HEAD], ""
    for heading in headings():
        if heading.startswith("## "):
            part = heading
            continue
        if part:
            lines.append(f"{part}\n")
            part = ""
        title = heading.removeprefix("### ")
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        lines.append(f"### [{title}](faults.md#{anchor})\n")
        for file, names in tests.get(title, {}).items():
            lines.append(f"- [{file}](../{file})")
            lines += [f"  - {name}" for name in names]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    INDEX.write_text(index())
