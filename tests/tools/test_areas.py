"""What a chat is limited to: no answer of a tool names a file outside the areas, and those inside
are found."""

import json
import os
import re
from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.agents.tools import toolset
from apps.core.errors import CodeinfoError, InvalidInput
from apps.index import queries
from apps.index.models import Root
from apps.index.types import Area
from apps.lookup.symbols import callers, imports
from apps.retrieval.query import repositories_of
from apps.retrieval.repositories import INCOMPLETE
from apps.tools.tools import TOOLS
from tests.support.following import chroma_filled
from tests.support.ingested import ingested_once

pytestmark = pytest.mark.door


def module(name: str, other: str) -> str:
    """A module that defines what all others define too, and calls another one."""
    return (
        f'"""Send a parcel again: {name}."""\n\n'
        f"from {other} import send_parcel as send_{other.replace('.', '_')}\n\n\n"
        f"def send_parcel(parcel):\n"
        f'    """Send a parcel again after a failure of {name}."""\n'
        f"    return send_{other.replace('.', '_')}(parcel)\n\n\n"
        f"def only_{name}(parcel):\n    return send_parcel(parcel)\n"
    )


def files_of(repository: str) -> dict[str, str | bytes]:
    return {
        "src/net.py": module(f"{repository}_net", "lib.store"),
        "src/net.pyi": f"# {repository}\ndef send_parcel(parcel): ...\n",
        "src/deep/work.py": module(f"{repository}_work", "src.net"),
        "srcs/near.py": module(f"{repository}_near", "src.net"),
        "lib/store.py": module(f"{repository}_store", "src.net"),
        "lib/blob.py": b"\0\1\2" * 100,
        "src/blob.py": b"\0\1\2" * 100,
        "docs/guide.md": f"# {repository}\n\nSend it again: `send_parcel` waits after a failure.\n",
        "tests/test_store.py": (
            f"# {repository}\nfrom lib.store import send_parcel\n\n\n"
            "def test_send_parcel():\n    assert send_parcel(None) is None\n"
        ),
        "top.py": module(f"{repository}_top", "lib.store"),
    }


# `acme` and `acme-two` are worktrees: they have equal files, which one store holds.
ACME = files_of("acme")
TWO = ACME | {"docs/two.md": "# Two\n\nHow a parcel is sent again: call `send_parcel`.\n"}
FILES = {"acme": ACME, "acme-two": TWO, "other": files_of("other")}
EVERY = {(name, path) for name, files in FILES.items() for path in files}
INGESTED = {(name, path) for name, path in EVERY if "blob" not in path}
NAMES = {
    (name, path): re.findall(r"def only_(\w+)", text)
    for name, files in FILES.items()
    for path, text in files.items()
    if isinstance(text, str)
}
PATHS = sorted({path for _, path in EVERY})

# What a chat may be limited to, and the expressions for repo/path inside.
AREAS: dict[str, tuple[tuple[Area, ...], str]] = {
    "nothing": ((), r".*"),
    "a repository": ((Area("acme"),), r"acme/.*"),
    "two repositories": ((Area("acme"), Area("other")), r"(acme|other)/.*"),
    "a folder": ((Area("acme", "src/"),), r"acme/src/.*"),
    "a folder without its slash": ((Area("acme", "src"),), r"acme/src/.*"),
    "a file": ((Area("acme", "src/net.py"),), r"acme/src/net\.py"),
    "files": (
        (Area("acme", "lib/store.py"), Area("acme", "top.py")),
        r"acme/(lib/store\.py|top\.py)",
    ),
    "a glob": (
        (Area("acme", "**/*e.{py,md}"),),
        r"acme/(lib/store\.py|docs/guide\.md|.*_store.py)",
    ),
    "a folder of any repository": ((Area("", "docs/"),), r"[^/]*/docs/.*"),
    "folders of two repositories": (
        (Area("acme", "src/"), Area("other", "lib/")),
        r"acme/src/.*|other/lib/.*",
    ),
    "a repository and a file": (
        (Area("other"), Area("acme", "lib/store.py")),
        r"other/.*|acme/lib/store\.py",
    ),
    "a repository and a glob": ((Area("other"), Area("", "*.md")), r"other/.*|.*\.md"),
    "folders of two worktrees": (
        (Area("acme", "src/"), Area("acme-two", "docs/")),
        r"acme/src/.*|acme-two/docs/.*",
    ),
    "the second worktree": ((Area("acme-two", "lib/"),), r"acme-two/lib/.*"),
    "no file": ((Area("acme", "none/"),), r"-"),
}
# Grep and ListFiles are limited to each of them; the other tools to one of each kind.
KINDS = [
    "nothing",
    "files",
    "a glob",
    "a folder of any repository",
    "a repository and a file",
    "folders of two worktrees",
    "no file",
]
each_kind = pytest.mark.parametrize("limited", KINDS, indirect=True)


class Limited(NamedTuple):
    """A toolset that is limited to areas, and the files inside."""

    tools: dict[str, Any]
    inside: set[tuple[str, str]]
    forms: Iterator[bool]  # whether the next answer is compact

    def call(self, tool: str, **arguments: Any) -> str:
        """The full or the compact answer as JSON, in turns, or the refusal; names no file
        outside."""
        said = {str(arguments.get(key, "")) for key in ("name", "path")}
        # What was asked for may be said again, also without its repository and its line.
        said |= {each.partition(":")[0] for each in said}
        said |= {each.partition("/")[2] for each in said if each.partition("/")[0] in FILES}
        try:
            answer = self.tools[tool].run(arguments, is_compact=next(self.forms))
        except CodeinfoError as error:
            answer = {"message": error.message, "details": error.details}
        text = json.dumps(answer)
        named = {each for each in self.outside(text) if each[1] not in said}
        named |= set(places(answer)) & EVERY - self.inside
        assert not named, (tool, arguments, named)
        assert not self.text_outside(text) - set(re.findall(r"\w+", str(arguments)))
        return text

    def outside(self, text: str) -> set[tuple[str, str]]:
        """The files outside the areas that a text names: by repository, or by a path that is
        nowhere inside."""
        paths = {path for _, path in self.inside}
        words = set(re.findall(r"[\w./-]+", text))
        bare = {word.rstrip(".").partition(":")[0] for word in words}
        return {
            (repo, path)
            for repo, path in EVERY - self.inside
            if f"{repo}/{path}" in bare or (path not in paths and path in bare)
        }

    def text_outside(self, text: str) -> set[str]:
        """The names in a text that only files outside define."""
        own = {f"only_{name}" for place in self.inside for name in NAMES.get(place, ())}
        return set(re.findall(r"only_\w+", text)) - own

    def found(self, tool: str, **arguments: Any) -> set[tuple[str, str]]:
        self.call(tool, **arguments)
        return set(places(self.tools[tool].run(arguments)))


def places(value: Any, repo: str = "") -> Iterator[tuple[str, str]]:
    """Repository and path of each file in an answer, full or compact."""
    if isinstance(value, list):
        yield from chain.from_iterable(places(each, repo) for each in value)
    if isinstance(value, dict):
        repo = value.get("repo", repo)
        for key in ("relPath", "target"):
            if isinstance(value.get(key), str):
                yield repo, value[key]
        yield from chain.from_iterable(places(each, repo) for each in value.values())


@pytest.fixture(scope="module")
def base(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("areas")))
    with ingested_once(django_db_blocker, base, FILES), chroma_filled(django_db_blocker):
        yield base


@pytest.fixture
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The tests read only, so they need no transaction, in which no query is cached."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(autouse=True)
def patient(db: None, base: Path, configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(ingest_base=(base,), tool_max_chars=1_000_000)
    # Another process may keep the machine busy.
    for each in (callers, imports):
        monkeypatch.setattr(each, "PARSE_SECONDS", 60.0)


@pytest.fixture(params=AREAS)
def limited(request: pytest.FixtureRequest) -> Limited:
    return limited_to(*AREAS[request.param])


def limited_to(areas: tuple[Area, ...], inside: str) -> Limited:
    tools = {tool.name: tool for tool in toolset(areas=areas)}
    assert set(tools) == {tool.name for tool in TOOLS}
    every = {(repo, path) for repo, path in EVERY if re.fullmatch(inside, f"{repo}/{path}")}
    return Limited(tools, every, cycle((False, True)))


def with_file(limited: Limited, *, ending: str = ".py") -> set[tuple[str, str]]:
    """The ingested files inside with one of the endings."""
    return {each for each in limited.inside & INGESTED if each[1].endswith(ending)}


def arguments_for(limited: Limited, tool: str, repo: str) -> dict[str, str]:
    """The repository of a file, if the tool takes one."""
    return (
        {"repository": repo} if "repository" in limited.tools[tool].parameters["properties"] else {}
    )


@pytest.mark.parametrize("areas", [areas for areas, _ in AREAS.values()], ids=list(AREAS))
def test_the_repositories_of_areas_need_not_be_named_too(areas: tuple[Area, ...]) -> None:
    alone, named = toolset(areas=areas), toolset(repositories_of(areas), areas=areas)
    assert [tool.parameters for tool in alone] == [tool.parameters for tool in named]
    assert [tool.description for tool in alone] == [tool.description for tool in named]


def test_the_worktrees_share_a_store(base: Path) -> None:
    stores = {root.name: root.store for root in queries.published_roots()}
    assert stores["acme"] == stores["acme-two"] != stores["other"]


QUESTION = "How is a parcel sent again after a failure?"


@each_kind
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_vector_search(limited: Limited, mode: str, configure: Any) -> None:
    configure(retrieval_mode=mode, chroma="follow", retrieval_cutoff_disabled=True)
    found = limited.found("VectorSearch", query=QUESTION, limit=20)
    assert found <= limited.inside
    if 0 < len(limited.inside & INGESTED) <= 10:
        assert found == limited.inside & INGESTED
    for path in (*PATHS, "src/", "docs/", "*.py", "acme/src/", "other/lib/", "nett.py", "wrong/"):
        limited.call("VectorSearch", query=QUESTION, path=path)
    for language in ("markdown", "rust"):
        limited.call("VectorSearch", query=QUESTION, language=language)
    for name in FILES:
        limited.call("VectorSearch", query=f"how does {name} send a parcel", repository=name)
        limited.call("VectorSearch", query=QUESTION, repository=[name, "acme"])


@each_kind
@pytest.mark.parametrize("tool", ["FindDefinitions", "FindReferences"])
def test_names(limited: Limited, tool: str) -> None:
    code = with_file(limited) | with_file(limited, ending=".pyi")
    defining = {each for each in code if "tests/" not in each[1]}
    found = limited.found(tool, name="send_parcel", limit=100)
    assert found == (defining if tool == "FindDefinitions" else code)
    for name in ("acme_net", "acme_store", "other_store", "other_top"):
        limited.call(tool, name=f"only_{name}")
        limited.call(tool, name=f"ONLY_{name}".title())
    for path in (*PATHS, "src/", "*.md", "acme/lib/", "nett.py"):
        limited.call(tool, name="send_parcel", path=path)
        limited.call(tool, name="nowhere", path=path)
    limited.call(tool, name="send_parcel", language="rust")
    for name in FILES:
        limited.call(tool, name="send_parcel", repository=name)
        limited.call(tool, name="store.send_parcel", repository=name)


@each_kind
def test_callers(limited: Limited) -> None:
    found = limited.found("FindCallers", name="send_parcel", depth=3, limit=50)
    # Each module calls its own.
    assert found >= {each for each in with_file(limited) if "tests/" not in each[1]}
    assert found <= limited.inside
    for path in PATHS:
        for line in (1, 7, 12):
            limited.call("FindCallers", name=f"{path}:{line}", depth=2)
        limited.call("FindCallers", name="send_parcel", path=path)
    for name in FILES:
        limited.call("FindCallers", name=f"only_{name}_store", repository=name)
        limited.call("FindCallers", name=f"{name}/lib/store.py:6", repository=name)


@each_kind
def test_imports(limited: Limited) -> None:
    for path in PATHS:
        own = {each for each in with_file(limited) if each[1] == path}
        found = limited.found("FindImports", name=path, limit=50)
        # What lies outside is named as libraries are: by its module.
        assert own <= found or limited.tools["FindImports"].run({"name": path})["libraries"]
        limited.call("FindImports", name=path, path="src/")
    for name in ("lib.store", "src.net", "lib", "store", "nowhere"):
        limited.call("FindImports", name=name)
    importing = {each for each in with_file(limited) if each[1] in ("top.py", "src/net.py")}
    assert importing <= limited.found("FindImports", name="lib.store", limit=50)


@pytest.mark.parametrize("mode", ["content", "files", "count"])
def test_grep(limited: Limited, mode: str) -> None:
    found = limited.found("Grep", pattern="send_parcel", mode=mode, context=2, limit=500)
    assert found == limited.inside & INGESTED
    for path in (*PATHS, "src/", "*.md", "acme/lib/", "nett.py"):
        limited.call("Grep", pattern="parcel", mode=mode, path=path)
    for pattern in ("only_acme_store", "only_other_top", "nowhere", "def.*parcel"):
        limited.call("Grep", pattern=pattern, mode=mode, limit=1)
    limited.call("Grep", pattern="parcel", mode=mode, language="rust")
    for name in FILES:
        limited.call("Grep", pattern="parcel", mode=mode, repository=name)


def test_list_files(limited: Limited) -> None:
    glob = limited.found("ListFiles", path="*", limit=1_000)
    assert glob == limited.found("ListFiles", depth=20, limit=1_000) == limited.inside & INGESTED
    skipped = limited.found("ListFiles", skipped=True)
    assert skipped == limited.inside - INGESTED
    folders = limited.tools["ListFiles"].run({"depth": 1})["results"]
    counts = sum(row.get("files", 1) for row in folders)
    assert counts == len(limited.inside & INGESTED)
    for path in (*PATHS, "src/", "docs/", "*.py", "acme/src/", "nett.py"):
        limited.call("ListFiles", path=path)
        limited.call("ListFiles", path=path, limit=1, skipped=True)
    limited.call("ListFiles", language="rust")


@each_kind
@pytest.mark.parametrize("tool", ["ReadFile", "FileOutline", "RelatedCode"])
def test_one_file(limited: Limited, tool: str) -> None:
    more = {"start_line": 1, "end_line": 8} if tool == "RelatedCode" else {}
    for repo, path in sorted(INGESTED):
        arguments = {"path": path, **arguments_for(limited, tool, repo), **more}
        is_inside = (repo, path) in limited.inside
        if "repository" not in arguments:
            (repo,) = {each for each, _ in limited.inside} or {"acme"}
            is_inside = (repo, path) in limited.inside
        text = limited.call(tool, **arguments)
        assert ("FORBIDDEN" in text or "may not be" in text or "not among" in text) != is_inside
        # A path may begin with its repository, or be wrong.
        for wrong in (f"{repo}/{path}", f"x/{path.rpartition('/')[2]}", path.rpartition("/")[2]):
            limited.call(tool, **{**arguments, "path": wrong})


@each_kind
def test_related_code(limited: Limited, configure: Any) -> None:
    configure(retrieval_cutoff_disabled=True)
    for repo, path in sorted(limited.inside & INGESTED):
        arguments = {"path": path, "start_line": 1, "end_line": 12, "limit": 20}
        arguments |= arguments_for(limited, "RelatedCode", repo)
        found = limited.found("RelatedCode", **arguments)
        assert found <= limited.inside
        for name in FILES:
            limited.call("RelatedCode", **arguments, within=name, within_path="lib/")


@each_kind
@pytest.mark.parametrize("tokens", [300, 8_000])
def test_context(limited: Limited, tokens: int, configure: Any) -> None:
    for disabled in (False, True):
        configure(retrieval_cutoff_disabled=disabled)
        found = limited.found("Context", question=QUESTION, max_tokens=tokens)
        assert bool(found) == bool(limited.inside)
        limited.call("Context", question="What calls send_parcel?", max_tokens=tokens)
        limited.call("Context", question=QUESTION, max_tokens=tokens, path="lib/")
        limited.call("Context", question=QUESTION, max_tokens=tokens, language="rust")


def test_the_list_of_repositories(limited: Limited) -> None:
    rows = limited.tools["ListIngestedRepositories"].run({})["repos"]
    limited.call("ListIngestedRepositories")
    expected = {repo for repo, _ in limited.inside} or {"acme"}
    assert {row["id"] for row in rows} == expected


@pytest.mark.django_db
def test_the_error_of_an_ingest_names_no_file_outside(limited: Limited) -> None:
    error = "lib/store.py, docs/guide.md and top.py cannot be read"
    Root.objects.update(last_error=error)
    limited.call("ListIngestedRepositories")
    for row in limited.tools["ListIngestedRepositories"].run({})["repos"]:
        is_whole = {each for each in EVERY if each[0] == row["id"]} <= limited.inside
        assert row["lastError"] == (error if is_whole else INCOMPLETE)


# Values for the arguments that tools require: a new tool is tried by its schema.
REQUIRED: dict[str, Any] = {
    "name": "send_parcel",
    "path": "lib/store.py",
    "pattern": "parcel",
    "query": QUESTION,
    "question": QUESTION,
    "start_line": 1,
    # A quote is looked for in other files if its own is missing.
    "text": f"nowhere.py:1-3\n```\n{module('acme_store', 'src.net')}\n```",
}


SOME = ["nothing", "a folder", "folders of two repositories"]


@pytest.mark.parametrize("limited", SOME, indirect=True)
@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_no_tool_names_a_file_outside(limited: Limited, tool: str) -> None:
    required = limited.tools[tool].parameters.get("required", ())
    for repository in ("acme", "other"):
        values = REQUIRED | {"repository": repository}
        arguments = {name: values[name] for name in required}
        limited.call(tool, **arguments)
        if limited.inside == EVERY and tool not in (
            "History",
            "Impact",
        ):  # no repository has commits here
            limited.tools[tool].run(arguments)  # it is no error


# --- how areas are written ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ACME", "{base}/acme", "acme"])
def test_a_repository_of_areas_is_named_as_anywhere_else(base: Path, name: str) -> None:
    name = name.format(base=base)
    limited = limited_to((Area(name, "src/"),), r"acme/src/.*")
    found = limited.found("Grep", pattern="send_parcel", limit=500)
    assert found == limited.inside & INGESTED
    assert "def send_parcel" in limited.call("ReadFile", path="src/net.py")
    whole = limited_to((Area(name),), r"acme/.*")
    assert "def send_parcel" in whole.call("ReadFile", path="lib/store.py")
    assert "acme" in whole.call("ListIngestedRepositories")


def test_areas_do_not_exceed_the_repositories_of_an_agent() -> None:
    tools = {tool.name: tool for tool in toolset(("acme",), areas=(Area("acme"), Area("other")))}
    rows = tools["Grep"].run({"pattern": "send_parcel", "limit": 500})["results"]
    assert {row["repo"] for row in rows} == {"acme"}
    with pytest.raises(InvalidInput) as refused:
        toolset(("acme",), areas=(Area("other"),))
    assert refused.value.code == "FORBIDDEN_REPOSITORY"


def test_arguments_cannot_widen_the_areas(base: Path) -> None:
    limited = limited_to((Area("acme", "src/"), Area("other", "lib/")), r"acme/src/.*|other/lib/.*")
    wider = [["acme", ""], ["other", "docs/"]]
    tricks: dict[str, Any]
    for tricks in (
        {" areas": []},
        {" areas": wider},
        {" areas": {"areas": wider}},
        {"areas": wider, "scope": wider, "filters": {"areas": wider}},
        {"repository": ["acme", "other"]},
        {"repository": []},
        {"path": "*"},
        {"path": "{src,lib,docs}/"},
    ):
        found = limited.found("Grep", pattern="send_parcel", limit=500, **tricks)
        assert found == limited.inside & INGESTED, tricks
        limited.call("Context", question=QUESTION, **tricks)
    for repository in ("acme-two", ["acme", "acme-two"], [["acme-two"]], {"a": "acme-two"}, [""]):
        for tool in ("Grep", "VectorSearch", "ListFiles", "Context"):
            text = limited.call(tool, pattern="x", query="x", question="x", repository=repository)
            assert "acme-two" not in text or "may not be looked into" in text
