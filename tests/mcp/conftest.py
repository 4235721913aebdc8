"""The product with the conformance suite's tools: in this process, or served on a port."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.product import Product, running


@pytest.fixture
def suite_tools(settings: Any) -> None:
    """Offer the suite's tools on /mcp, in this process."""
    settings.ROOT_URLCONF = "tests.mcp.urls"


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product on a port of its own, with the suite's tools."""
    settings = "tests.mcp.settings"
    with running(tmp_path_factory.mktemp("mcp"), DJANGO_SETTINGS_MODULE=settings) as product:
        yield product
