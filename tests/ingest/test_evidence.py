"""Evidence says whether a tracked folder named like output is one. Its name says it of others."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from django.test import Client

from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.ingest.requests import ingested, paths, skipped
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

NAMES = ("vendor", "dist", "build", "coverage", "logs")


def test_the_name_of_a_tracked_folder_says_nothing(
    client: Client, folder: Path, index: None
) -> None:
    files = [f"{path}{name}/x.py" for name in NAMES for path in ("", "apps/")]
    write_files(init(folder), dict.fromkeys(files, "x = 1\n"))
    commit_all(folder)
    write_files(folder, dict.fromkeys([f"pkg/{name}/y.py" for name in NAMES], "y = 1\n"))
    write_files(folder, {"vendor/new.py": "y = 1\n"})
    status = ingested(client, folder)
    assert paths() == sorted(files)
    assert status["leftOut"] == {"untracked": 0, "ignored": 6}
    assert skipped(client)["vendor/new.py"] == "Excluded: vendor/"
    assert skipped(client)["pkg/logs/"] == "Excluded: logs/"


EVIDENCE: dict[str, tuple[Mapping[str, str], str, str]] = {
    "go": ({"vendor/modules.txt": "# x\n"}, "vendor", "Vendored: modules.txt"),
    "composer": ({"vendor/autoload.php": "<?php\n"}, "vendor", "Vendored: autoload.php"),
    "cargo": (
        {"vendor/x/.cargo-checksum.json": "{}"},
        "vendor/x",
        "Vendored: .cargo-checksum.json",
    ),
    "main": ({"package.json": '{"main": "./dist/x.js"}'}, "dist", "Generated: package.json"),
    "exports": (
        {"p/package.json": '{"exports": {".": {"import": ["./build/x.js"]}}}'},
        "p/build",
        "Generated: package.json",
    ),
    "minified": ({"dist/lib.min.js": "x\n"}, "dist", "Generated: lib.min.js"),
    "cmake": ({"build/CMakeCache.txt": "x\n"}, "build", "Generated: CMakeCache.txt"),
    "gradle": ({"build.gradle": "x\n"}, "build", "Generated: build.gradle"),
    "lcov": ({"coverage/lcov.info": "x\n"}, "coverage", "Generated: lcov.info"),
}


@pytest.mark.parametrize("tool", EVIDENCE)
def test_files_of_tools_and_manifests_say_it(folder: Path, tool: str) -> None:
    files, output, reason = EVIDENCE[tool]
    write_files(init(folder), {**files, f"{output}/deep/x.py": "x = 1\n"})
    commit_all(folder)
    found = discover(folder)
    assert reasons(found)[f"{output}/"] == reason
    assert f"{output}/deep/x.py" not in names(found)


@pytest.mark.parametrize(
    "manifest",
    [
        '{"main": "lib/x.js", "scripts": {"build": "dist/x"}}',
        "{",
        "[1]",
        '{"main": 3, "files": {"a": null}}',
        '{"exports": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"exports": ' + "[" * 500 + '"dist"' + "]" * 500 + "}",
        "\xff",
    ],
)
def test_a_manifest_that_does_not_name_the_folder_is_no_evidence(
    folder: Path, manifest: str
) -> None:
    write_files(init(folder), {"package.json": manifest, "dist/x.py": "x = 1\n"})
    commit_all(folder)
    assert "dist/x.py" in names(discover(folder))


def test_gitattributes_of_all_levels_say_it_of_single_files(
    client: Client, folder: Path, index: None
) -> None:
    write_files(
        init(folder),
        {
            ".gitattributes": "vendor/** linguist-vendored\n*.gen.py linguist-generated=true\n",
            "vendor/x.py": "x = 1\n",
            "vendor/ours/.gitattributes": "* -linguist-vendored\nz.py linguist-vendored\n",
            "vendor/ours/y.py": "x = 1\n",
            "vendor/ours/z.py": "x = 1\n",
            "build/a.gen.py": "x = 1\n",
            "build/b.py": "x = 1\n",
            "src/c.gen.py": "x = 1\n",
        },
    )
    commit_all(folder)
    ingested(client, folder)
    assert [path for path in paths() if path.endswith(".py")] == [
        "build/b.py",
        "src/c.gen.py",
        "vendor/ours/y.py",
    ]
    assert skipped(client) == {
        "build/a.gen.py": "Generated: .gitattributes",
        "vendor/ours/z.py": "Vendored: .gitattributes",
        "vendor/x.py": "Vendored: .gitattributes",
    }


def test_gitattributes_except_files_from_a_folder_of_a_tool(folder: Path) -> None:
    files = {"vendor/modules.txt": "# x\n", "vendor/a.go": "x\n", "vendor/ours/b.go": "x\n"}
    write_files(
        init(folder), files | {".gitattributes": "vendor/ours/** linguist-vendored=false\n"}
    )
    commit_all(folder)
    found = discover(folder)
    assert names(found) == [".gitattributes", "vendor/ours/b.go"]
    assert reasons(found)["vendor/a.go"] == "Vendored: modules.txt"


def test_a_submodule_in_such_a_folder_is_part_of_the_repository(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    inner = write_files(init(tmp_path_factory.mktemp("inner")), {"lib.py": "x = 1\n"})
    commit_all(inner)
    git(init(folder), "submodule", "add", "-q", str(inner), "vendor/lib")
    assert "vendor/lib/lib.py" in names(discover(folder))
