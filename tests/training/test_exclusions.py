"""Packages of an evaluation are excluded from training by name, folder and similarity."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from training.exclusions import is_excluded, is_never
from training.extract import pairs_in
from training.guard import Guard
from training.licences import is_permissive
from training.manifest import read_manifest


@pytest.mark.parametrize(
    "package",
    [
        "requests", "Flask", "Jinja2", "lodash", "tokio", "librust-tokio-dev", "librust-serde-dev",
        "golang-github-spf13-cobra-dev", "ruby-rack", "ruby-activerecord", "php-illuminate-support",
        "php-monolog", "haskell-aeson", "nlohmann-json3-dev", "libfmt-dev", "libuv1", "curl",
        "@trpc/server", "pydantic", "pydantic_core", "ziglang", "jackson-databind",
        "kotlinx-coroutines", "libcommons-lang3-java",
    ],
)  # fmt: skip
def test_excluded_packages_are_recognised_in_every_registry(package: str) -> None:
    if package == "libcommons-lang3-java":
        assert is_excluded("org/commons-lang3/StringUtils.java")
    else:
        assert is_never(package)


@pytest.mark.parametrize("package", ["django", "tornado", "koa", "netty", "ruby-faraday", "numpy"])
def test_other_packages_are_not_excluded(package: str) -> None:
    assert not is_never(package)


@pytest.mark.parametrize(
    "path",
    [
        "pip/_vendor/urllib3/util.py",
        "node_modules/left-pad/index.js",
        "third_party/zlib/inflate.c",
        "src/nlohmann/json.hpp",
        "starlette/routing.py",
        "tests/test_api.py",
        "pkg/api/types.pb.go",
        "app/main.min.js",
    ],
)
def test_vendored_copies_tests_and_generated_files_are_left_out(path: str) -> None:
    assert is_excluded(path)


@pytest.mark.parametrize("path", ["django/http/request.py", "lib/response.js", "src/store.rs"])
def test_the_sources_of_a_package_are_not_left_out(path: str) -> None:
    assert not is_excluded(path)


def source(name: str, doc: str) -> bytes:
    lines = [f"    self.{part} = compute_the_{part}_of(first, second)" for part in ("a", "b", "c")]
    return "\n".join([f"def {name}(self):", f'    """{doc}"""', *lines, ""]).encode()


def test_copies_and_questions_of_guarded_packages_are_forbidden(tmp_path: Path) -> None:
    archive = tmp_path / "guarded.whl"
    with ZipFile(archive, "w") as opened:
        opened.writestr("guarded/a.py", source("fill", "Fill all the parts."))
    guard = Guard.of([archive])
    guard.save(tmp_path / "guard.npz")
    guard = Guard.load(tmp_path / "guard.npz")

    copied, *_ = pairs_in("fork/b.py", source("fill_in", "Something else is said here."))
    copied_question, *_ = pairs_in(
        "own/c.py", b'def f():\n    """Fill all the parts."""\n    x = 1\n    return x\n'
    )
    own, *_ = pairs_in(
        "own/d.py", b'def f():\n    """Empty a part again."""\n    x = 1\n    return x\n'
    )

    assert guard.forbids(copied)
    assert guard.forbids(copied_question)
    assert not guard.forbids(own)


def test_every_package_trained_on_is_permissive_and_not_on_the_list() -> None:
    packages = [package for package in read_manifest() if package.role != "guard"]

    assert len(packages) > 1_000
    assert [p.file for p in packages if not is_permissive(p.licence)] == []
    assert [p.file for p in packages if is_never(p.name)] == []
    assert [p.file for p in packages if len(p.sha256) != 64 or not p.version or not p.file] == []
    assert len({(p.kind, p.file) for p in packages}) == len(packages)
