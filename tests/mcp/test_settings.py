"""The conformance suite's tools are for tests: the product does not start with them."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from apps.mcp.search import tools
from tests.house.sources import HOME
from tests.mcp.suite_tools import TOOLS

pytestmark = pytest.mark.door


def started(settings: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": os.environ["CODEINFO_DATA_DIR"]}
    own |= {"DJANGO_SETTINGS_MODULE": settings, "CODEINFO_TEST_TOOLS": "true"}
    script = "from django.conf import settings; print(settings.CONFIG.test_tools)"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=HOME, env=own, capture_output=True, text=True, check=False)


def test_the_product_refuses_to_start_with_them() -> None:
    refused = started("codeinfo.settings")
    assert refused.returncode != 0
    assert "CODEINFO_TEST_TOOLS is for the tests' settings only" in refused.stderr


def test_the_settings_of_the_tests_accept_them() -> None:
    assert started("tests.mcp.settings").stdout == "True\n"


def test_they_are_listed_only_if_enabled(settings: Any, configure: Callable[..., None]) -> None:
    own = tools()
    settings.MCP_TEST_TOOLS = "tests.mcp.suite_tools.TOOLS"
    assert [tool.name for tool in tools()] == [tool.name for tool in own]
    configure(test_tools=True)
    assert tools()[len(own) :] == TOOLS
