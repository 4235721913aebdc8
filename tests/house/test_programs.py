"""Every program that codeinfo starts is started by apps/core/programs.py."""

import ast

import pytest

from tests.house.sources import name_of, product

pytestmark = pytest.mark.door

STARTERS = {"subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call"}
STARTERS |= {"subprocess.check_output", "subprocess.getoutput", "os.system", "os.popen"}
STARTERS |= {"os.posix_spawn", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}
STARTERS |= {f"os.{verb}{kind}" for verb in ("exec", "spawn") for kind in ("l", "le", "v", "ve")}


def calls(source: str) -> set[str]:
    found = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {ast.unparse(function) for function in found}


def test_only_one_module_starts_programs() -> None:
    found = {name_of(file) for file in product() if calls(file.read_text()) & STARTERS}
    assert found == {"apps/core/programs.py"}


def test_none_is_started_through_another_name() -> None:
    imported = [
        f"{name_of(file)}:{node.lineno}"
        for file in product()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "multiprocessing")
    ]
    assert imported == []
