"""Questions that have a shape, and time enough to answer them."""

from typing import Any

import pytest

from tests.lookup.symbols.conftest import Post


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer depends on how busy the machine is."""
    monkeypatch.setattr("apps.tools.shaped.SECONDS", 60.0)


def ask(post: Post, query: str, **more: Any) -> dict[str, Any]:
    """The answer by the shape of a question."""
    status, body = post("vector-search", query=query, **more)
    assert status == 200, body
    answer: dict[str, Any] = body["answer"]
    return answer
