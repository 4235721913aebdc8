"""The Context tool: what answers a question, packed into a number of tokens."""

from apps.retrieval.context.build import build_context
from apps.retrieval.context.types import Context, ContextQuery

__all__ = ["Context", "ContextQuery", "build_context"]
