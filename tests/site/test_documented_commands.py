"""The commands that the documents show do what the documents say."""

import argparse
import importlib.util
import re
import shlex
from pathlib import Path

import httpx
import pytest
from django.core.management import get_commands

from tests.browser.product import Product, running
from tests.support.git import commit_all, init
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import until_ingested

HOME = Path(__file__).parent.parent.parent
DOCUMENTS = [HOME / "README.md", HOME / "CONTRIBUTING.md", *sorted((HOME / "docs").glob("*.md"))]
TEXT = "\n".join(document.read_text() for document in DOCUMENTS)
CURLS = re.findall(r"^    (curl .*)$", TEXT, re.M)
PATIENCE = 60

CURL = argparse.ArgumentParser(exit_on_error=False)
CURL.add_argument("url")
CURL.add_argument("-s", action="store_true")
CURL.add_argument("-N", action="store_true")
CURL.add_argument("-X", dest="method")
CURL.add_argument("-H", dest="headers", action="append", default=[])
CURL.add_argument("-d", dest="data")


def curl(command: str) -> httpx.Response:
    """What curl would be answered; an option that is not known here fails the test."""
    arguments = CURL.parse_args(shlex.split(command)[1:])
    return httpx.request(
        arguments.method or ("POST" if arguments.data else "GET"),
        arguments.url,
        headers=dict(re.split(r":\s*", header, maxsplit=1) for header in arguments.headers),
        content=arguments.data,
        timeout=PATIENCE,
    )


@pytest.mark.door
def test_each_curl_command_succeeds_in_the_order_of_the_document(tmp_path: Path) -> None:
    assert len(CURLS) >= 5
    with running(tmp_path, CODEINFO_MCP_PROVIDER="builtin") as product:
        repo = write_files(init(product.repos / "repo"), SAMPLE)
        commit_all(repo)
        for command in CURLS:
            here = at(product, command)
            answer = curl(here.replace("/home/me/repo", str(repo)))
            assert answer.is_success, (command, answer.text)
            assert '"error":' not in answer.text, (command, answer.text)
            assert '"isError": true' not in answer.text, (command, answer.text)
            if "runId" in answer.text and "/ingest/start" in command:
                run = answer.json()["runId"]
                until_ingested(product, run)
        roots = httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"]
        assert [root["name"] for root in roots] == ["repo"]


def at(product: Product, command: str) -> str:
    """The command for a product that has other ports than a user's."""
    base, _, port = product.url.rpartition(":")
    ports = (product.url, f"{base}:{int(port) + 1}", f"{base}:{int(port) + 2}")
    for documented, url in zip(("5010", "5011", "5012"), ports, strict=True):
        command = command.replace(f"http://127.0.0.1:{documented}", url)
    return command


@pytest.mark.parametrize("name", sorted(set(re.findall(r"python3? -m ([\w.]+)", TEXT))))
def test_each_module_that_is_run_by_name_exists(name: str) -> None:
    assert importlib.util.find_spec(name) is not None


@pytest.mark.parametrize(
    "name",
    sorted(set(re.findall(r"(?:python3? |`)((?:scripts|benchmarks)/[\w.-]+)(?![\w./-])", TEXT))),
)
def test_each_script_that_is_run_by_path_exists(name: str) -> None:
    assert (HOME / name).is_file()


def test_manage_py_knows_each_command_that_is_named() -> None:
    for name in set(re.findall(r"manage\.py (\w+)", TEXT)):
        assert name in get_commands(), name
