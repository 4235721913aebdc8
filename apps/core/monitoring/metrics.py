"""The Prometheus metrics of `GET /metrics`.

Labels have few values, all defined by codeinfo: no names, paths, models or texts of users.
"""

from prometheus_client import Counter, Histogram

REQUESTS = Counter("codeinfo_requests", "Requests over HTTP", ["method", "route", "status"])
STEP_SECONDS = Histogram(
    "codeinfo_step_seconds",
    "How long each step took: a request, an answer, a search, a call of Chroma",
    ["step"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
)
TURNS = Counter("codeinfo_turns", "Answers that have ended", ["provider", "status"])
TOKENS = Counter("codeinfo_tokens", "Tokens that models reported", ["provider", "kind"])
TOOL_CALLS = Counter("codeinfo_tool_calls", "Calls of tools by models", ["tool", "outcome"])
INGEST_RUNS = Counter("codeinfo_ingest_runs", "Ingests that have ended", ["operation", "state"])
CHUNKS = Counter("codeinfo_chunks_embedded", "Chunks that were given a vector")
