"""The code browser shows what the changes of a work tree affect."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from tests.browse.pages import get, link, text
from tests.lookup.impact.conftest import FILES, changed, shop

__all__ = ["changed", "shop"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

TAX = f"# Since 25\n{FILES['shop/tax.py']}"


def test_a_repository_leads_to_what_its_changes_affect(
    shop: Path, changed: Callable[[dict[str, str | None]], Path], client: Client
) -> None:
    url = link(get(client, "/code/shop"), "Impact")
    assert "Nothing differs from HEAD." in text(get(client, url))
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * RATE + 1")})
    page = get(client, url)
    shown = text(page)
    assert "Changed 1 shop/tax.py:9 body _share" in shown
    assert "_share ← with_tax ← test_with_tax assert with_tax(100) == 125" in shown
    assert '<svg class="graph__svg"' in page
    assert "test_with_tax calls with_tax" in shown
    assert 'href="/code/shop/shop/tax.py?lines=9-10"' in page
    assert "docs/tax.md 4 times with shop/tax.py" in shown
    assert 'href="/code/shop">Code</a>' in page


def test_a_base_that_is_not_there_is_an_error(shop: Path, client: Client) -> None:
    page = get(client, "/code/shop?view=impact&base=nowhere", 404)
    assert "No branch, tag or commit is named 'nowhere'." in text(page)
