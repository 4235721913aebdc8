"""The suite's tools are for tests: the product does not start with them."""

import os
import subprocess
import sys

from tests.house.sources import HOME

SCRIPT = "import django; django.setup(); from apps.mcp.search import tools; print(len(tools()))"


def started(**more: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": os.environ["CODEINFO_DATA_DIR"]}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(
        command, cwd=HOME, env=own | more, capture_output=True, text=True, check=False
    )


def test_the_product_refuses_to_start_with_the_suites_tools() -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
    refused = started(**settings, CODEINFO_TEST_TOOLS="true")
    assert refused.returncode != 0
    assert "CODEINFO_TEST_TOOLS is for the tests' settings only" in refused.stderr


def test_the_settings_of_the_tests_offer_them_only_when_asked() -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.mcp.settings"}
    without, with_them = started(**settings), started(**settings, CODEINFO_TEST_TOOLS="true")
    assert int(with_them.stdout) > int(without.stdout) > 0
