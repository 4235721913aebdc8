"""Settings of the server that the conformance suite tests: the product's, and the suite's tools."""

from codeinfo.settings import *  # noqa: F403

ROOT_URLCONF = "tests.mcp.urls"
