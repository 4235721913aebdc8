"""Settings of the server that the conformance suite judges: the product's own, and its tools."""

from codeinfo.settings import *  # noqa: F403

MCP_TEST_TOOLS = "tests.mcp.suite_tools.TOOLS"
