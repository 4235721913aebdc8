"""Filters as models write them, and what is said when they leave no file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.retrieval.conftest import Ask
from tests.support.following import fill_chroma
from tests.support.ingested import ingest, write_files

__all__ = ["fill_chroma"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

RETRY = "def retry_request(request):\n    # send it again after a failure\n    send(request)\n"
SHOP = {
    "src/net/client.py": RETRY,
    "src/net/[id]/page.ts": "export function retryPage(request) {\n  return send(request)\n}\n",
    "src/web/view.tsx": "export function retryView(request) {\n  return send(request)\n}\n",
    "shop/cart.py": "def retry_cart(request):\n    send(request)\n",
    "top.py": "def retry_top(request):\n    send(request)\n",
}
OTHER = {"src/client.py": RETRY.replace("request", "delivery")}

Post = Callable[..., dict[str, Any]]


@pytest.fixture
def shop(tmp_path: Path, configure) -> Path:
    """Repositories `Shop`, in the folder `the-shop`, and `other`."""
    configure(ingest_base=(tmp_path,))
    ingest(write_files(tmp_path / "the-shop", SHOP), "Shop")
    ingest(write_files(tmp_path / "other", OTHER), "other")
    return tmp_path


@pytest.fixture
def post(client: Client) -> Post:
    def send(tool: str, /, *, status: int = 200, **body: Any) -> dict[str, Any]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        assert response.status_code == status, response.content
        answer: dict[str, Any] = response.json()
        return answer

    return send


def files(answer: dict[str, Any]) -> set[str]:
    return {f"{row['repo']}/{row['relPath']}" for row in answer["results"]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("*.{ts,tsx}", {"Shop/src/net/[id]/page.ts", "Shop/src/web/view.tsx"}),
        ("src/{net,web}/", {f"Shop/{path}" for path in SHOP if path.startswith("src/")}),
        ("**/*.py", {"Shop/src/net/client.py", "Shop/shop/cart.py", "Shop/top.py"}),
        ("src/**/client.py", {"Shop/src/net/client.py"}),
        ("src/net/[id]/", {"Shop/src/net/[id]/page.ts"}),
        ("src/net/[!i]*", {"Shop/src/net/client.py", "Shop/src/net/[id]/page.ts"}),
        ("./src/web", {"Shop/src/web/view.tsx"}),
    ],
)
def test_a_path_may_be_a_glob_as_shells_have_it(
    shop: Path, ask: Ask, path: str, expected: set[str]
) -> None:
    found = files(ask(query="retry a request", path=path, repository="Shop", limit=20))
    assert found == expected


def test_the_parts_and_the_vectors_read_a_glob_alike(
    shop: Path, ask: Ask, configure: Callable[..., None], fill_chroma: Callable[[], None]
) -> None:
    fill_chroma()
    for path in ("*.{ts,tsx}", "src/net/[id]/", "**/client.py"):
        configure(retrieval_mode="hybrid")
        found = files(ask(query="retry a request", path=path, limit=20))
        configure(retrieval_mode="vector")
        assert files(ask(query="retry a request", path=path, limit=20)) == found != set()


def test_braces_have_a_limit(shop: Path, post: Post) -> None:
    answer = post("vector-search", status=400, query="x", path="{a,b}" * 7)
    assert answer["details"] == ["path must stand for at most 64 globs"]
    assert post("vector-search", status=400, query="x", path="**/" * 300)["details"]


@pytest.mark.parametrize("name", ["Shop", "shop", "SHOP", "the-shop", "{folder}", "{folder}/"])
def test_a_repository_is_named_in_any_case_or_by_its_folder(
    shop: Path, ask: Ask, name: str
) -> None:
    name = name.format(folder=shop / "the-shop")
    found = ask(query="retry a request", repository=name, limit=20)["results"]
    assert {row["repo"] for row in found} == {"Shop"}


def test_the_exact_id_wins(shop: Path, ask: Ask) -> None:
    ingest(write_files(shop / "small", {"small.py": RETRY}), "shop")
    for name in ("shop", "Shop"):
        found = ask(query="retry a request", repository=name, limit=20)["results"]
        assert {row["repo"] for row in found} == {name}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("shop/src/net/client.py", {"Shop/src/net/client.py"}),
        ("the-shop/src/web/", {"Shop/src/web/view.tsx"}),
        ("other/src", {"other/src/client.py"}),
        ("shop/*.tsx", {"Shop/src/web/view.tsx"}),
        # a folder of this name comes first
        ("shop/", {"Shop/shop/cart.py"}),
    ],
)
def test_a_path_may_begin_with_its_repository(
    shop: Path, ask: Ask, post: Post, path: str, expected: set[str]
) -> None:
    assert files(ask(query="retry a request", path=path, limit=20)) == expected
    assert files(post("symbol-references", name="send", path=path)) == expected


def test_an_outline_takes_such_a_path_too(shop: Path, post: Post) -> None:
    answer = post("file-outline", repository="SHOP", path="the-shop/src/net/client.py")
    assert (answer["repo"], answer["relPath"]) == ("Shop", "src/net/client.py")


@pytest.mark.parametrize("language", ["Python", "PYTHON", ".py", "py"])
def test_a_language_is_named_in_any_case(shop: Path, ask: Ask, language: str) -> None:
    found = ask(query="retry a request", language=language, limit=20)["results"]
    assert {row["language"] for row in found} == {"python"}


def test_an_unknown_language_lists_the_known(shop: Path, post: Post) -> None:
    (problem,) = post("vector-search", status=400, query="x", language="klingon")["details"]
    assert problem.startswith("language is not known: klingon (known: python, ")
    assert "typescript" in problem


@pytest.mark.parametrize(
    ("filters", "hint"),
    [
        (
            {"path": "src/nett/"},
            "No file of the ingested repositories matches the path 'src/nett/'. "
            "Nearest paths: src/net/.",
        ),
        (
            {"path": "clinet.py", "repository": "shop"},
            "No file of Shop matches the path 'clinet.py'. Nearest paths: src/net/client.py.",
        ),
        (
            {"path": "web/", "repository": "shop"},
            "No file of Shop matches the path 'web/'. Nearest paths: src/web/.",
        ),
        (
            {"path": "shop/src/nett/"},
            "No file of Shop matches the path 'src/nett/'. Nearest paths: src/net/.",
        ),
        (
            {"path": "*.sql"},
            "No file of the ingested repositories matches the path '*.sql'.",
        ),
        (
            {"language": "rust"},
            "No file of the ingested repositories is in rust. "
            "Languages there: python, typescript, tsx.",
        ),
        (
            {"language": "rust", "path": "src/web"},
            "No file of the ingested repositories under 'src/web' is in rust. "
            "Languages there: tsx.",
        ),
    ],
)
def test_the_filter_that_leaves_no_file_is_explained(
    shop: Path, post: Post, client: Client, filters: dict[str, str], hint: str
) -> None:
    assert post("vector-search", query="retry", **filters)["hint"] == hint
    assert post("symbol-definitions", name="send", **filters)["hint"] == hint
    assert post("symbol-references", name="send", **filters)["hint"] == hint
    for mode in ("", "symbols"):
        page = client.get("/search", {"q": "send", "mode": mode, **filters})
        assert hint in page.content.decode().replace("&#x27;", "'")


def test_only_an_answer_without_results_has_a_hint(shop: Path, post: Post) -> None:
    assert "hint" not in post("vector-search", query="retry", path="src/")
    assert "hint" not in post("symbol-references", name="send", path="src/")
    unknown = post("symbol-references", name="nowhere", path="src/")
    assert unknown["hint"].startswith("No line uses this identifier.")
