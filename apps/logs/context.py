"""The id of the request being served, for every log line written on its behalf."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
