"""Fixtures of tests that send many requests."""

import asyncio
from collections.abc import Iterator

import pytest

from apps.conversations import runner


@pytest.fixture
def loop(transactional_db: None) -> Iterator[asyncio.Runner]:
    """One event loop for all examples of a test; answers that were begun end before it does."""
    with asyncio.Runner() as loop:
        yield loop
        loop.run(runner.shutdown())
