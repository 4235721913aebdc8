"""POST /tools/impact: what a change of the work tree, or a patch, affects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.ingest.runs import queue
from tests.ingest.requests import post
from tests.lookup.impact.conftest import CART, FILES, Ask, diff_of
from tests.support.git import git

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Change = Callable[[dict[str, str | None]], Path]
TAX = f"# Since 25\n{FILES['shop/tax.py']}"


def rows(answer: dict[str, Any], kind: str) -> list[tuple[str, str, str]]:
    return [
        (row["relPath"], row.get("symbol", ""), row["certainty"])
        for row in answer["results"]
        if row["kind"] == kind
    ]


def changes(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (row["change"], row["relPath"], row.get("symbol", ""))
        for row in answer["results"]
        if row["kind"] == "changed"
    }


def test_a_change_of_a_body_reaches_callers_and_tests(ask: Ask, changed: Change) -> None:
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * RATE + 1")})
    status, answer = ask(depth=3)
    assert status == 200
    assert changes(answer) == {("body", "shop/tax.py", "_share")}
    callers = rows(answer, "caller")
    assert callers[0] == ("shop/tax.py", "with_tax", "proven")
    assert ("shop/cart.py", "Cart.total", "proven") in callers
    tests = rows(answer, "test")
    assert {("tests/test_tax.py", "test_with_tax", "proven")} <= set(tests)
    assert {("tests/test_cart.py", "test_total", "proven")} <= set(tests)
    assert "test_nothing" not in {symbol for _, symbol, _ in tests}
    (row,) = [row for row in answer["results"] if row.get("symbol") == "test_total"]
    way = [step["symbol"] for step in row["way"]]
    assert way == ["test_total", "Cart.total", "with_tax", "_share"]
    assert row["chunk"] == "assert Cart([100]).total() == 125"
    assert row["way"][0]["line"] == row["startLine"] == 5
    assert ("shop/cart.py", "", "proven") in rows(answer, "importer")
    (together,) = [row for row in answer["results"] if row["kind"] == "together"]
    assert (together["relPath"], together["of"], together["commits"]) == (
        "docs/tax.md",
        "shop/tax.py",
        4,
    )
    assert answer["base"] == git(changed({}), "rev-parse", "HEAD").strip()


def test_a_line_that_only_imports_is_no_caller(ask: Ask, changed: Change) -> None:
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * RATE + 1")})
    answer = ask(depth=4)[1]
    callers = [row for row in answer["results"] if row["kind"] == "caller"]
    assert [row["chunk"] for row in callers if "import" in row["chunk"]] == []
    assert {row["chunk"] for row in callers} >= {"return cart.total()"}


def test_nothing_has_changed(shop: Path, ask: Ask) -> None:
    status, answer = ask()
    assert (status, answer["results"], answer["hint"]) == (200, [], "Nothing differs from HEAD.")


def test_changes_of_a_signature_names_and_files(ask: Ask, changed: Change) -> None:
    cart = CART.replace("checkout(cart)", "checkout(cart, tip=0)").replace("is_empty", "has_none")
    changed(
        {
            "shop/cart.py": cart,
            "shop/tax.py": TAX.replace("0.25", "0.2").replace(
                "\n\ndef unused(price):\n    return price\n", ""
            ),
            "shop/coupon.py": "class Coupon:\n    def value(self):\n        return 1\n",
        }
    )
    answer = ask()[1]
    assert changes(answer) == {
        ("signature", "shop/cart.py", "checkout"),
        ("renamed", "shop/cart.py", "Cart.has_none"),
        ("signature", "shop/tax.py", "RATE"),
        ("removed", "shop/tax.py", "unused"),
        ("added", "shop/coupon.py", "Coupon"),
    }
    tests = rows(answer, "test")
    # By a property and a fixture, and by a constant.
    assert ("tests/test_cart.py", "test_is_empty", "possible") in tests
    assert ("tests/test_tax.py", "test_with_tax", "possible") in tests


def test_the_work_tree_may_be_compared_with_an_earlier_commit(shop: Path, ask: Ask) -> None:
    answer = ask(base="first")[1]
    assert changes(answer) == {("file", "shop/tax.py", ""), ("file", "docs/tax.md", "")}
    assert ask(base="ingest")[1]["results"] == []
    status, answer = ask(base="nowhere")
    assert (status, answer["error"]) == (404, "REF_NOT_FOUND")


def test_a_patch_is_compared_with_the_ingested_text(ask: Ask, changed: Change) -> None:
    folder = changed({"shop/tax.py": TAX.replace("price + _share", "price - _share")})
    patch = diff_of(folder)
    git(folder, "checkout", "-q", ".")
    for text in (patch, patch.replace("\n", "\r\n"), diff_of(folder, "-R") or patch):
        status, answer = ask(patch=text)
        assert status == 200
        assert changes(answer) == {("body", "shop/tax.py", "with_tax")}
        assert ("tests/test_tax.py", "test_with_tax", "proven") in rows(answer, "test")
        assert "base" not in answer


def test_an_answer_has_pages(ask: Ask, changed: Change) -> None:
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * RATE + 1")})
    every = ask()[1]["results"]
    found, cursor = [], None
    while True:
        answer = ask(limit=2, cursor=cursor)[1]
        found += answer["results"]
        cursor = answer.get("nextCursor")
        if not cursor:
            break
    assert found == every


def test_a_file_that_is_gone_from_the_index_too_is_missed_by_its_importers(
    ask: Ask, changed: Change, client: Client
) -> None:
    """The index follows the work tree: it has no such file any more."""
    folder = changed({"shop/tax.py": None})
    try:
        assert post(client, f"/ingest/reembed/{folder}", {})[0] == 202
        queue.drain()
        answer = ask()[1]
        assert ("removed", "shop/tax.py", "with_tax") in changes(answer)
        importers = {path for path, _, _ in rows(answer, "importer")}
        assert importers == {"shop/cart.py", "tests/test_tax.py"}
        assert ("shop/cart.py", "Cart.total", "possible") in rows(answer, "caller")
        tests = {symbol for _, symbol, _ in rows(answer, "test")}
        assert {"test_with_tax", "test_total"} <= tests
    finally:
        git(folder, "checkout", "-q", ".")
        post(client, f"/ingest/reembed/{folder}", {})
        queue.drain()
