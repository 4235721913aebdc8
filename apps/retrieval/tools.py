"""What a model may call to look into the index. The same verbs serve HTTP and, later, MCP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A named verb. `parameters` is a JSON schema; `run` is synchronous and may raise our errors."""

    name: str
    description: str
    parameters: JSON
    run: Callable[[Mapping[str, Any]], JSON]
