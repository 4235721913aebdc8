"""The names of the specification that codeinfo writes itself."""

import mcp_types
import pytest
from mcp_types import version

from apps.mcp import specification

REVISIONS = [name for name in vars(specification) if name.endswith(("_VERSIONS", "_VERSION"))]
OTHERS = [name for name in vars(specification) if name.isupper() and name not in REVISIONS]


@pytest.mark.parametrize("name", [name for name in OTHERS if not name.startswith("_")])
def test_codes_and_keys_are_those_of_the_package(name: str) -> None:
    assert getattr(specification, name) == getattr(mcp_types, name)


@pytest.mark.parametrize("name", [name for name in REVISIONS if name != "JSONRPC_VERSION"])
def test_revisions_are_those_of_the_package(name: str) -> None:
    assert getattr(specification, name) == getattr(version, name)
