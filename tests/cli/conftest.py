"""The server with the tools of the conformance suite, one for the tests of `codeinfo mcp`."""

from tests.mcp.conftest import served

__all__ = ["served"]
