"""The tools of the conformance suite, added if CODEINFO_TEST_TOOLS is set."""

from collections.abc import Sequence
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from apps.core.config import config
from apps.mcp.types import McpTool


def with_suite(own: Sequence[McpTool]) -> Sequence[McpTool]:
    """The tools of an endpoint, followed by `settings.MCP_TEST_TOOLS` if tests enable them."""
    if not config().test_tools:
        return own
    return (*own, *cast(Sequence[McpTool], import_string(settings.MCP_TEST_TOOLS)))
