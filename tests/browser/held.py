"""Answers that a test holds back while it does something on the page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import APIResponse, Page, Route

from tests.support.waiting import wait_until


@contextmanager
def held(page: Page, address: str, *, answered: bool = False) -> Iterator[Callable[[], None]]:
    """Hold the first request to `address`, which the block causes. Yields what lets it go on: to
    the server, or to its end if the page has dropped it.

    answered: the server has answered when the block ends, and only its answer is held
    """
    first: list[Route] = []
    answers: list[APIResponse] = []

    def hold(route: Route) -> None:
        if first:
            route.fallback()
            return
        first.append(route)
        if answered:
            answers.append(route.fetch())

    def let_it_come() -> None:
        if answered:
            first[0].fulfill(response=answers[0])
        else:
            first[0].continue_()

    page.route(address, hold)
    with page.expect_request(address):
        yield let_it_come
    if answered:
        wait_until(lambda: page.evaluate("true") and answers)
