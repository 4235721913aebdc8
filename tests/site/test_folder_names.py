"""Data folders whose names mean something in a URL: they are paths all the same."""

from pathlib import Path

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from codeinfo import settings
from tests.browser.product import Product, running
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into, until_followed

PATIENCE = 60
SAME = "one "


def paths_found(product: Product) -> set[str]:
    """The files that a search names."""
    body = {"query": "how long to wait before a retry"}
    found = httpx.post(f"{product.url}/tools/vector-search", json=body, timeout=PATIENCE).json()
    return {each["relPath"] for each in found.get("results", [])}


def ingest(product: Product) -> None:
    repo = write_files(product.repos / "light#house?%41+", SAMPLE)
    ingest_into(product, repo, name="lighthouse")


@pytest.mark.fault("A data folder with an odd name")
@pytest.mark.door
def test_whatever_a_data_folder_is_called_all_of_it_is_in_there(tmp_path: Path) -> None:
    """Two that differ behind a `#` share nothing."""
    first, other = tmp_path / f"{SAME}#a ?%41+\tb&c=d", tmp_path / f"{SAME}#b ?%42+\tx"
    with running(first, CODEINFO_CHROMA="follow") as product:
        ingest(product)
        until_followed(product)
        assert "src/retry.py" in paths_found(product)
        assert (
            httpx.get(f"{product.url}/static/css/tokens.css", timeout=PATIENCE).status_code == 200
        )
    for name in ("codeinfo.sqlite3", "chroma/chroma.sqlite3", "secret.key", "logs/server.log"):
        assert (first / "data" / name).is_file(), name
    with running(other) as product:
        assert httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"] == []
        assert not paths_found(product)
    with running(first) as product:
        assert "src/retry.py" in paths_found(product)
    assert {each.name for each in tmp_path.iterdir()} == {first.name, other.name}


@pytest.mark.fault("A data folder with an odd name")
@pytest.mark.parametrize("name", ["a#b", "a?b", "a%41b", "a+b", "a\tb", "a b", "a%b", "ä", "a;b&c"])
def test_the_database_is_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(settings, "DATA_DIR", Path("/data") / name)
    assert settings.database("")["NAME"] == f"/data/{name}/codeinfo.sqlite3"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:////data/a b+c.sqlite3", "/data/a b+c.sqlite3"),
        ("sqlite:////data/a%23b%3Fc%25d%09e.sqlite3", "/data/a#b?c%d\te.sqlite3"),
        ("sqlite:///data/a.sqlite3", "data/a.sqlite3"),
        ("sqlite:////data/100%.sqlite3", "/data/100%.sqlite3"),
        ("sqlite://:memory:", ":memory:"),
        ("sqlite://", ":memory:"),
    ],
)
def test_a_database_url_names_its_file_by_the_rules_of_urls(url: str, name: str) -> None:
    assert settings.database(url)["NAME"] == name


@pytest.mark.fault("A data folder with an odd name")
@pytest.mark.parametrize("url", ["sqlite:////data/a#b", "sqlite:////data/a?b=1", "sqlite:////a\tb"])
def test_a_database_url_that_means_two_things_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="%23"):
        settings.database(url)
