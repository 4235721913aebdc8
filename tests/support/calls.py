"""A right call of each tool, on the small repository `lighthouse` of `ingested.SAMPLE`."""

from typing import Any

from apps.tools.tools import TOOLS

CALLS: dict[str, dict[str, Any]] = {
    "ListIngestedRepositories": {},
    "VectorSearch": {"query": "How long does a retry wait?"},
    "FindDefinitions": {"name": "should_retry"},
    "FindReferences": {"name": "attempt"},
    "FindCallers": {"name": "RetryPolicy"},
    "FindImports": {"name": "src/retry.py"},
    "FileOutline": {"repository": "lighthouse", "path": "src/retry.py"},
    "Grep": {"pattern": r"retry\w*", "context": 1},
    "ReadFile": {"repository": "lighthouse", "path": "src/retry.py", "lines": "1-2, 4-"},
    "ListFiles": {"depth": 1},
    "Context": {"question": "How long does a retry wait?"},
    "History": {"repository": "lighthouse", "of": "diff", "to": "HEAD"},
    "CheckCitations": {"text": "See src/retry.py:6-8 and src/store.js:1."},
    "Impact": {"repository": "lighthouse"},
    "Overview": {"repository": "lighthouse"},
    "RelatedCode": {"repository": "lighthouse", "path": "src/retry.py", "start_line": 1},
}
# Of the tools that have a route, by method and path.
REQUESTS = {f"POST /tools/{tool.route}": CALLS.get(tool.name, {}) for tool in TOOLS if tool.route}
