"""The conformance suite's own tools, beside ours while CODEINFO_TEST_TOOLS is set."""

from collections.abc import Sequence
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from apps.core.config import config
from apps.mcp.types import McpTool


def with_suite(own: Sequence[McpTool]) -> Sequence[McpTool]:
    """An endpoint's tools, and those of `settings.MCP_TEST_TOOLS` where tests want them."""
    if not config().test_tools:
        return own
    return (*own, *cast(Sequence[McpTool], import_string(settings.MCP_TEST_TOOLS)))
