"""The product with the conformance suite's tools: in this process, or served on a port."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.product import Product, running
from tests.mcp.settings import MCP_TEST_TOOLS


@pytest.fixture
def suite_tools(settings: Any, configure: Callable[..., None]) -> None:
    """Offer the suite's tools on /mcp, in this process."""
    settings.MCP_TEST_TOOLS = MCP_TEST_TOOLS
    configure(test_tools=True)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product on a port of its own, with the suite's tools."""
    tools = {"DJANGO_SETTINGS_MODULE": "tests.mcp.settings", "CODEINFO_TEST_TOOLS": "true"}
    with running(tmp_path_factory.mktemp("mcp"), **tools) as product:
        yield product
