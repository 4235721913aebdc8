"""axe has no finding in the states that `make screenshots` draws; the others are in
test_gallery.py."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.axe import objections
from tests.browser.drawn_pages import DRAWN
from tests.browser.drawn_servers import DRAWN_START
from tests.browser.gallery import Gallery, gallery, opened, show


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Gallery]:
    with gallery(tmp_path_factory.mktemp("drawn"), browser, DRAWN_START) as made:
        yield made


@pytest.mark.parametrize("name", DRAWN)
def test_axe_finds_nothing_wrong_in_a_drawn_state(servers: Gallery, name: str) -> None:
    state = DRAWN[name]
    with opened(servers, state) as page:
        assert objections(page) == []
        show(page, state.width, dark=True)
        assert objections(page, colours_only=True) == []
