"""Ask jedi what each call of a package means: `python -m benchmarks.callers_oracles.python folder`.

Prints JSON: path → calls `[row, column, name, definitions]`. Definitions are `[path, row]` in the
folder; [] if the call leads out of it, null if jedi does not know. Rows and columns are 0-based.
The calls come from `ast`, not from the syntax trees that are judged.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jedi  # type: ignore[import-not-found]

Place = tuple[int, int, str]  # row, column, name


def places(source: str) -> Iterator[Place]:
    """The names that are called in a file."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id != "super":
            row, end, name = called.lineno - 1, called.col_offset, called.id
            yield row, len(lines[row].encode()[:end].decode()), name
        elif isinstance(called, ast.Attribute):
            row, name = (called.end_lineno or 1) - 1, called.attr
            end = len(lines[row].encode()[: called.end_col_offset].decode())
            yield row, end - len(name), name


def definitions(script: Any, row: int, column: int, root: Path) -> list[list[Any]] | None:
    """What the name at a place means."""
    try:
        names = script.goto(row + 1, column, follow_imports=True, follow_builtin_imports=True)
        found = [each for each in names if each.type in ("function", "class")]
        for each in names:
            if each.type not in ("function", "class", "module", "param"):
                found += [one for one in each.infer() if one.type in ("function", "class")]
    except Exception:  # noqa: BLE001 - jedi raises what it likes
        return None
    if not found:
        return None
    inside = [each for each in found if each.module_path and root in each.module_path.parents]
    return [[each.module_path.relative_to(root).as_posix(), each.line - 1] for each in inside]


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    if (root / "__init__.py").exists():
        sys.exit(f"{root} is a package: jedi would take an installed one of its name for it")
    project = jedi.Project(root)
    answer: dict[str, list[list[Any]]] = {}
    for path in sorted(root.rglob("*.py")):
        source = path.read_text("utf-8", "replace")
        try:
            found = list(places(source))
        except SyntaxError:
            continue
        script = jedi.Script(source, path=path, project=project)
        answer[path.relative_to(root).as_posix()] = [
            [row, column, name, definitions(script, row, column, root)]
            for row, column, name in found
        ]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
