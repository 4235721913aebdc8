"""Fixtures of the browser tests: one product per worker, one browser while the worker has browser
tests, a page per test.

Tests here are plain functions and do not use the database: the product is another process.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chat import model, repository
from tests.browser.chromium import (
    CHROMIUM,
    PLAIN,
    WIDE,
    Complaints,
    OpenPage,
    Profiles,
    chromium,
    go,
    opened_pages,
)
from tests.browser.citations import conversation, harbour
from tests.browser.lantern import lantern
from tests.browser.product import HOME, Product, running
from tests.stand_ins.openai_server import OpenAIStandIn

__all__ = ["OpenPage", "conversation", "harbour", "lantern", "model", "repository"]

HERE = Path(__file__).parent

# What is waited for comes in a moment; on a busy machine it may take long, and is no less right.
expect.set_options(timeout=30_000)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def stand_in() -> Iterator[OpenAIStandIn]:
    """The scripted model server that the product under test talks to."""
    with OpenAIStandIn() as server:
        yield server


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory, stand_in: OpenAIStandIn) -> Iterator[Product]:
    """The product, shared by the tests of this worker: leave its index as you found it."""
    folder = tmp_path_factory.mktemp("product")
    # The examples, and what tests put beside them.
    agents = shutil.copytree(HOME / "agents", folder / "agents")
    config = {"CODEINFO_OPENAI_BASE_URL": stand_in.url, "CODEINFO_AGENTS_HOME": str(agents)}
    with running(folder, **config) as served:
        yield served


# Until the last of these tests that come together, so that the event loop it holds open ends before
# other folders' async tests begin.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists() and os.environ.get("CI") != "true":
        pytest.skip(f"{CHROMIUM} is not there: apt-get install {CHROMIUM.name}")
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="package")
def profiles(browser: Browser, product: Product) -> Iterator[Profiles]:
    made = Profiles(browser, product.url)
    yield made
    made.close()


@pytest.fixture
def complaints() -> Complaints:
    """What the test's pages complained of; any that is not expected fails the test."""
    return Complaints()


@pytest.fixture
def open_page(profiles: Profiles, complaints: Complaints) -> Iterator[OpenPage]:
    """open_page("/ingest", size=PHONE, dark=True): a new page in a browser profile of its own."""
    with opened_pages(profiles, complaints) as open_one:
        yield open_one


@pytest.fixture(scope="package")
def window(profiles: Profiles) -> Page:
    return profiles.take().new_page()


@pytest.fixture
def look(window: Page, complaints: Complaints) -> Iterator[OpenPage]:
    """look("/ingest", size=PHONE, dark=True): as `open_page`, for tests that neither listen to the
    page nor route its requests. They share one page: to open another takes twice as long."""

    def leave() -> None:
        # What a page says of its end is nobody's complaint, as when a profile is closed.
        complaints.hush(window)
        # An empty page would be in a process of its own, as would the next one of the server.
        window.goto(PLAIN)

    def look_at(path: str, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Page:
        leave()
        complaints.listen(window)
        window.set_viewport_size({"width": size[0], "height": size[1]})
        window.emulate_media(color_scheme="dark" if dark else "light")
        go(window, path)
        return window

    complaints.listen(window)
    yield look_at
    leave()
    window.mouse.move(0, 0)
    window.evaluate("localStorage.clear(); sessionStorage.clear()")
    window.context.clear_cookies()
    assert complaints.unexpected() == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """The home page, wide and light."""
    return open_page("/")
