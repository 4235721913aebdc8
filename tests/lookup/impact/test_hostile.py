"""Impact shows nothing that an ingest leaves out, and hostile patches get a clear error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.agents.tools import toolset
from apps.index.types import Area
from tests.lookup.history.conftest import PRIVATE_KEY as KEY
from tests.lookup.impact.conftest import FILES, Ask
from tests.support.git import commit_all, git

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Change = Callable[[dict[str, str | None]], Path]
TAX = f"# Since 25\n{FILES['shop/tax.py']}"
HEAD = "diff --git a/shop/tax.py b/shop/tax.py\n--- a/shop/tax.py\n+++ b/shop/tax.py\n"
NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n"


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("no diff", "patch must be a unified diff"),
        ("diff --git a/x b/y", "patch must be a unified diff"),
        (HEAD + "@@ -1,3 +1,3 @@\n-a\n+b\n", "patch is malformed: a hunk of shop/tax.py"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\n+c\n", "patch is malformed"),
        (HEAD + f"@@ -{'9' * 5000} +1 @@\n-a\n+b\n", "patch must be a unified diff"),
        ("--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n", "inside of the repository"),
        (NEW.format("/etc/passwd") + "@@ -0,0 +1 @@\n+a\n", "inside of the repository"),
        (HEAD * 301, "patch must change at most 300 files"),
        ('diff --git "a/\\9" b/x\n', "patch must be a unified diff"),
        ("x" * 900_001, "patch must have at most 900,000 characters"),
        (HEAD + "@@ -1 +1 @@\n-a\n+\0\n", "900,000 characters, and no NUL"),
        (7, "patch must be a string"),
    ],
)
def test_a_patch_that_is_none_is_refused(
    shop: Path, ask: Ask, patch: str | int, problem: str
) -> None:
    status, answer = ask(patch=patch)
    assert (status, answer["error"]) == (400, "VALIDATION_FAILED")
    assert problem in answer["details"][0]


@pytest.mark.parametrize(
    ("patch", "note"),
    [
        (HEAD + "@@ -1 +1 @@\n-nowhere\n+x\n", "text the patch does not apply: shop/tax.py"),
        (
            "diff --git a/a.png b/a.png\nindex 1..2 100644\nBinary files a/a.png and b/a.png "
            "differ\n",
            "Binary files of the patch are left out: a.png",
        ),
        (
            HEAD.replace("shop/tax", "private/plan") + "@@ -1 +1 @@\n-def plan():\n+x\n",
            "that are not ingested, or may not be looked into: private/plan.py",
        ),
    ],
)
def test_files_of_a_patch_that_do_not_fit_are_named(
    shop: Path, ask: Ask, patch: str, note: str
) -> None:
    status, answer = ask(patch=patch)
    assert (status, answer["results"]) == (200, [])
    assert note in answer["notes"]


def test_a_patch_may_add_remove_and_rename_files(shop: Path, ask: Ask) -> None:
    gone = "".join(f"-{line}\n" for line in FILES["tests/test_tax.py"].splitlines())
    patch = (
        NEW.format("shop/coupon.py") + "@@ -0,0 +1,2 @@\n+def coupon():\n+    return 1\n"
        "diff --git a/tests/test_tax.py b/tests/test_tax.py\ndeleted file mode 100644\n"
        f"--- a/tests/test_tax.py\n+++ /dev/null\n@@ -1,5 +0,0 @@\n{gone}"
        "diff --git a/docs/tax.md b/docs/rate.md\nsimilarity index 100%\n"
        "rename from docs/tax.md\nrename to docs/rate.md\n-- \n2.39.5\n"
    )
    answer = ask(patch=patch)[1]
    assert "notes" not in answer
    changed = {
        (row["change"], row["relPath"], row.get("symbol"))
        for row in answer["results"]
        if row["kind"] == "changed"
    }
    assert changed == {
        ("added", "shop/coupon.py", "coupon"),
        ("removed", "tests/test_tax.py", "test_with_tax"),
        ("file", "tests/test_tax.py", None),
        ("file", "docs/tax.md", None),
        ("file", "docs/rate.md", None),
    }


def test_a_patch_that_moves_or_copies_a_file_says_so(shop: Path, ask: Ask) -> None:
    """A copy removes nothing; of a moved file, all that used it is affected."""
    head = "diff --git a/shop/tax.py b/shop/rates.py\nsimilarity index 100%\n"
    answer = ask(patch=f"{head}rename from shop/tax.py\nrename to shop/rates.py\n")[1]
    changed = {
        (row["change"], row["symbol"], row["oldPath"])
        for row in answer["results"]
        if row["kind"] == "changed" and "symbol" in row
    }
    assert ("renamed", "with_tax", "shop/tax.py") in changed
    tests = {row.get("symbol") for row in answer["results"] if row["kind"] == "test"}
    assert {"test_with_tax", "test_total"} <= tests
    edit = (
        "--- a/shop/tax.py\n+++ b/shop/rates.py\n@@ -9,2 +9,2 @@\n"
        " def _share(price):\n-    return price * RATE\n+    return price\n"
    )
    for end in ("", edit):
        patch = f"{head}copy from shop/tax.py\ncopy to shop/rates.py\n{end}"
        answer = ask(patch=patch)[1]
        changed = {row["change"] for row in answer["results"] if row["kind"] == "changed"}
        assert changed == {"added", "file"}, answer


def test_a_patch_that_adds_many_definitions_is_followed_in_part(shop: Path, ask: Ask) -> None:
    lines = "".join(f"+def f{number}(): pass\n" for number in range(100))
    parts = (NEW.format(f"shop/a{n}.py") + f"@@ -0,0 +1,100 @@\n{lines}" for n in range(290))
    status, answer = ask(patch="".join(parts), limit=1000)
    assert status == 200
    assert "Only the first 200 changed definitions were followed." in answer["notes"]


def test_a_patch_without_heads_of_git_is_read(shop: Path, ask: Ask) -> None:
    patch = (
        "--- shop/tax.py\t2026-11-28\n+++ shop/tax.py\t2026-11-29\n@@ -9,2 +9,2 @@\n"
        " def _share(price):\n-    return price * RATE\n+    return price\n"
    )
    answer = ask(patch=patch)[1]
    assert [row["symbol"] for row in answer["results"] if row["kind"] == "changed"] == ["_share"]


def test_what_an_ingest_leaves_out_is_not_compared(ask: Ask, changed: Change) -> None:
    folder = changed(
        {
            "private/plan.py": "def plan():\n    return 'hidden'\n",
            ".env": "TOKEN=abc-secret\n",
            "shop/key.py": f"KEY = '''{KEY}'''\n",
            "build/lib.py": "def built():\n    return 1\n",
            ".gitignore": "build/\n",
            "shop/link.py": "def real():\n    return 1\n",
        }
    )
    (folder / "shop/link.py").unlink()
    (folder / "shop/link.py").symlink_to("/etc/passwd")
    answer = ask()[1]
    text = json.dumps(answer)
    assert not [word for word in ("hidden", "abc-secret", "MIIEvQ", "root:") if word in text]
    assert {row["relPath"] for row in answer["results"]} == {".gitignore"}


def test_an_old_secret_is_not_compared(shop: Path, ask: Ask, changed: Change) -> None:
    changed({"shop/key.py": f"KEY = '''{KEY}'''\n"})
    head = git(shop, "rev-parse", "HEAD").strip()
    commit_all(shop, "A key")
    try:
        changed({"shop/key.py": "KEY = None\n"})
        answer = ask()[1]
        assert "MIIEvQ" not in json.dumps(answer)
        assert "shop/key.py is left out: its content cannot be shown." in answer["notes"]
    finally:
        git(shop, "reset", "-q", "--hard", head)


def test_a_chat_sees_only_its_paths(shop: Path, changed: Change) -> None:
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * 2"), "docs/tax.md": "# No\n"})
    (tool,) = toolset((), ("Impact",), (Area("shop", "shop/"),))
    found = tool.run({})
    assert {row["relPath"].partition("/")[0] for row in found["results"]} == {"shop"}
    assert "docs/tax.md" not in json.dumps(found)
    assert "test_tax" not in json.dumps(found)
    (tool,) = toolset((), ("Impact",), (Area("shop", "docs/"),))
    assert {row["relPath"] for row in tool.run({})["results"]} == {"docs/tax.md"}
    patch = HEAD + "@@ -9,2 +9,2 @@\n def _share(price):\n-    return price * RATE\n+    return 1\n"
    found = tool.run({"patch": patch})
    assert found["results"] == [] and "RATE" not in json.dumps(found)


def test_a_restricted_endpoint_sees_only_its_paths(
    shop: Path, changed: Change, client: Client
) -> None:
    changed({"shop/tax.py": TAX.replace("price * RATE", "price * 2")})

    def result(area: str) -> dict[str, Any]:
        call = {"name": "Impact", "arguments": {"format": "full"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        url = f"/mcp?tool=Impact&repository=shop&area=shop%09{area}"
        headers = {"accept": "application/json, text/event-stream"}
        response = client.post(url, body, content_type="application/json", headers=headers)
        found: dict[str, Any] = response.json()["result"]["structuredContent"]
        return found

    assert {row["relPath"] for row in result("shop/")["results"]} >= {"shop/tax.py"}
    assert result("docs/")["results"] == []
