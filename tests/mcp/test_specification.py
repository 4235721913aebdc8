"""The names of the specification that codeinfo writes itself."""

import mcp_types
import pytest
from mcp_types import jsonrpc, version

from apps.mcp import specification

NAMES = [
    name
    for name, value in vars(specification).items()
    if name[0].isupper() and isinstance(value, int | str | tuple)
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_what_it_means_in_the_package(name: str) -> None:
    defined = vars(jsonrpc) | vars(version) | vars(mcp_types)
    assert getattr(specification, name) == defined[name]
