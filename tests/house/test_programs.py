"""Every program that codeinfo starts is started by apps/core/system/programs.py."""

import ast

import pytest

from codeinfo_cli.project import FLAGS
from tests.house.sources import HOME, name_of, product

pytestmark = pytest.mark.door

STARTERS = {"subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call"}
STARTERS |= {"subprocess.check_output", "subprocess.getoutput", "os.system", "os.popen"}
STARTERS |= {"os.posix_spawn", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
STARTERS |= {f"os.{verb}{kind}" for verb in ("exec", "spawn") for kind in ("l", "le", "v", "ve")}


def calls(source: str) -> set[str]:
    found = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {ast.unparse(function) for function in found}


def commands(source: str) -> set[str]:
    """The lists that begin with this Python: what comes after it."""
    return {
        ast.unparse(node.elts[1])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.List | ast.Tuple)
        and len(node.elts) > 1
        and ast.unparse(node.elts[0]) == "sys.executable"
    }


def test_a_python_that_codeinfo_starts_imports_nothing_of_the_current_folder() -> None:
    files = [*product(), *(HOME / "codeinfo_cli").rglob("*.py")]
    found = {name_of(file): commands(file.read_text()) for file in files}
    assert found["codeinfo_cli/server.py"] == {"*project.FLAGS"} and "-P" in FLAGS
    safe = {"'-P'", "'-I'", "*project.FLAGS"}
    assert {name: those for name, those in found.items() if those - safe} == {}
    named = {name_of(file) for file in files if "sys.executable" in file.read_text()}
    # `clients/launch.py` writes entries: tests/cli starts them.
    listed = {name for name, those in found.items() if those}
    assert named == listed | {"codeinfo_cli/clients/launch.py"}


def test_only_one_module_starts_programs() -> None:
    found = {name_of(file) for file in product() if calls(file.read_text()) & STARTERS}
    assert found == {"apps/core/system/programs.py"}


def test_none_is_started_through_another_name() -> None:
    imported = [
        f"{name_of(file)}:{node.lineno}"
        for file in product()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "multiprocessing")
    ]
    assert imported == []
