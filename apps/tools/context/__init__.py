"""The Context tool: what answers a question, packed into a number of tokens."""

from apps.tools.context.build import build_context, find
from apps.tools.context.types import Context, ContextQuery

__all__ = ["Context", "ContextQuery", "build_context", "find"]
