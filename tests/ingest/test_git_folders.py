"""The git repositories beneath the bases: a bounded list, and an ingest of one click."""

import os
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from apps.index.models import IngestRun, Root
from apps.ingest import git_folders, panels, services
from tests.ingest.pages import HTMX, make_root, make_run
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Configure = Callable[..., None]


@pytest.fixture
def base(folder: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only base, an empty folder. The machine may be busy, so there is no hurry."""
    inside = folder / "base"
    inside.mkdir()
    configure(ingest_base=(inside,), first_root="none")
    monkeypatch.setattr(git_folders, "SECONDS", 60.0)
    return inside


def repository(base: Path, name: str, files: dict[str, str | bytes]) -> Path:
    (base / name).mkdir(parents=True)
    made = write_files(init(base / name), files)
    commit_all(made)
    return made


def names() -> list[str]:
    return sorted(each.name for each in git_folders.git_folders().folders)


def html(client: Client) -> str:
    return unescape(client.get("/ui/ingest/nearby").content.decode())


class TestList:
    def test_each_repository_has_its_size_and_language(self, client: Client, base: Path) -> None:
        files = {"a.py": "x = 1\n" * 200, "b.ts": "let x\n", "readme.md": "words " * 900}
        repository(base, "team/flask", {**files, "logo.png": b"\x89PNG" * 99})
        write_files(base / "team/flask", {"untracked.py": "y = 1\n" * 9000})
        (each,) = git_folders.git_folders().folders
        assert (each.name, each.files, each.language, each.size) == ("flask", 3, "python", 6606)
        shown = html(client)
        assert f'value="{base}/team/flask"' in shown
        assert "python · 6.6 kB" in shown

    def test_a_repository_inside_another_is_part_of_it(self, base: Path) -> None:
        outer = repository(base, "outer", {"a.py": "x\n"})
        (outer / "inner").mkdir()
        init(outer / "inner")
        assert names() == ["outer"]

    def test_a_base_may_be_a_repository_itself(self, base: Path) -> None:
        commit_all(write_files(init(base), {"a.py": "x\n"}))
        assert names() == ["base"]

    def test_the_one_that_git_wrote_last_comes_first(self, base: Path) -> None:
        for number, name in enumerate("bca"):
            made = repository(base, name, {"a.py": "x\n"})
            os.utime(made / ".git" / "index", (number, number))
        assert [each.name for each in git_folders.git_folders().folders] == ["a", "c", "b"]

    def test_links_are_not_followed(self, folder: Path, base: Path) -> None:
        outside = repository(folder, "outside", {"secret.py": "x\n"})
        (base / "link").symlink_to(outside)
        (base / "loop").symlink_to(base)
        assert names() == []

    def test_hidden_and_dependency_folders_are_not_looked_into(self, base: Path) -> None:
        for name in (".cache/x", "node_modules/y", "vendor/z"):
            repository(base, name, {"a.py": "x\n"})
        assert names() == []

    def test_what_is_ingested_is_left_out(
        self, client: Client, base: Path, configure: Configure
    ) -> None:
        for name in ("first", "ingested", "new"):
            repository(base, name, {"a.py": "x\n"})
        configure(ingest_base=(base,), first_root=str(base / "first"))
        make_root("ingested", path=str(base / "ingested"))
        shown = html(client)
        assert f'value="{base}/new"' in shown
        assert f'value="{base}/first"' not in shown
        assert f'value="{base}/ingested"' not in shown

    def test_names_are_escaped_and_isolated(self, client: Client, base: Path) -> None:
        name = "<img src=x onerror=alert(1)>\u202egnp"
        repository(base, name, {"a.py": "x\n"})
        os.makedirs(os.fsencode(base) + b"/\xff/.git")
        raw = client.get("/ui/ingest/nearby").content.decode()
        assert "<img" not in raw
        assert raw.count('name="path"') == 1
        assert "<bdi>&lt;img" in raw

    def test_what_cannot_be_ingested_says_why_and_has_no_button(
        self, client: Client, base: Path
    ) -> None:
        repository(base, "broken", {"a.py": "x\n"})
        (base / "broken" / ".git" / "HEAD").write_text("nonsense")
        shown = html(client)
        assert "Cannot be ingested" in shown
        assert "names neither a branch nor a commit" in shown
        assert 'name="path"' not in shown

    def test_no_repository_says_where_was_looked(self, client: Client, base: Path) -> None:
        shown = html(client)
        assert "No git repository found" in shown
        # The page says it once, at the field for another folder.
        assert f"Any folder beneath {base}" in client.get("/chat").content.decode()


class TestLimits:
    """The search ends, and says that there may be more."""

    @pytest.fixture(autouse=True)
    def several(self, base: Path) -> None:
        for name in ("a", "b", "c"):
            repository(base, f"{name}/{name}", {"a.py": "x\n"})

    def found(self) -> git_folders.GitFolders:
        return git_folders.git_folders()

    def test_within_them_the_list_is_complete(self, client: Client) -> None:
        assert self.found().is_complete
        assert "There may be more" not in html(client)

    @pytest.mark.parametrize(
        ("limit", "value", "count"),
        [
            ("SECONDS", 0.0, 0),
            ("MAX_FOLDERS", 5, 1),
            ("MAX_REPOSITORIES", 2, 2),
            ("MAX_LISTED", 1, 1),
            ("MAX_DEPTH", 0, 0),
        ],
    )
    def test_beyond_one_it_says_so(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, count: int
    ) -> None:
        monkeypatch.setattr(git_folders, limit, value)
        found = self.found()
        assert len(found.folders) == count
        assert not found.is_complete

    def test_time_ends_while_a_repository_is_measured(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def late(*arguments: object) -> None:
            raise git_folders.OutOfTime

        monkeypatch.setattr(git_folders, "check_until", lambda deadline: late)
        assert [each.size for each in self.found().folders] == [None] * 3


class TestStart:
    def press(self, client: Client, path: Path, code: int = 200) -> str:
        response = client.post("/ui/ingest/next", {"path": str(path)}, headers=HTMX)
        assert response.status_code == code
        return unescape(response.content.decode()) + str(response.headers)

    def test_one_click_queues_it_under_its_own_name(self, client: Client, base: Path) -> None:
        made = repository(base, "flask", {"a.py": "x\n"})
        shown = self.press(client, made)
        assert "Ingesting flask" in shown
        run = IngestRun.objects.get()
        assert (run.path, run.name, run.state) == (str(made), "flask", "queued")

    def test_it_waits_for_the_run_of_the_first_start(
        self, client: Client, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_run(name="codeinfo", path="/src/codeinfo", state="embedding", slot="door")
        made = repository(base, "flask", {"a.py": "x\n"})
        assert "Starts when codeinfo is done" in self.press(client, made)
        self.press(client, made)  # a second press changes nothing
        assert IngestRun.objects.filter(name="flask").count() == 1
        other = repository(base, "gin", {"a.go": "package a\n"})
        self.press(client, other)
        assert IngestRun.objects.filter(state="queued").count() == 2
        monkeypatch.setattr(services, "MAX_WAITING", 2)
        third = repository(base, "echo", {"a.go": "package a\n"})
        assert "BUSY" in self.press(client, third, 422)

    def test_a_taken_name_gets_that_of_the_folder_around_it(
        self, client: Client, base: Path
    ) -> None:
        make_root("flask", path="/elsewhere/flask")
        self.press(client, repository(base, "team/flask", {"a.py": "x\n"}))
        assert IngestRun.objects.get().name == "team/flask"

    def test_a_folder_outside_the_bases_is_refused(
        self, client: Client, folder: Path, base: Path
    ) -> None:
        assert "OUTSIDE_BASE" in self.press(client, folder, 422)
        assert not IngestRun.objects.exists()

    def test_the_ingest_page_lists_the_others_after_the_first(
        self, client: Client, base: Path
    ) -> None:
        assert 'hx-get="/ui/ingest/nearby?view=page"' in client.get("/ingest").content.decode()
        first, _ = (repository(base, name, {"a.py": "x\n"}) for name in ("flask", "gin"))
        make_root("flask", path=str(first))
        shown = client.get("/ui/ingest/nearby?view=page").content.decode()
        assert "gin" in shown and "flask" not in shown
        assert 'name="view" value="page"' in shown
        form = {"path": str(base / "gin"), "view": "page"}
        response = client.post("/ui/ingest/next", form, headers=HTMX).content.decode()
        assert 'id="active-run"' in response and 'hx-get="/ui/ingest/nearby?view=page"' in response
        assert "gin" not in client.get("/ui/ingest/nearby?view=page").content.decode()
        without_scripts = client.post("/ui/ingest/next", form)
        assert without_scripts["Location"] == "/ingest"

    def test_without_javascript_it_leads_back_to_the_chat(self, client: Client, base: Path) -> None:
        made = repository(base, "flask", {"a.py": "x\n"})
        response = client.post("/ui/ingest/next", {"path": str(made)})
        assert (response.status_code, response["Location"]) == (302, "/chat")


class TestProgress:
    """The part of the empty chat that shows a run of a folder that somebody has chosen."""

    @pytest.fixture(autouse=True)
    def first(self, configure: Configure) -> Iterator[None]:
        configure(first_root="/src/codeinfo")
        return

    def shown(self) -> str:
        return unescape(panels.render("chat")["_chat_run"])

    def test_the_first_root_is_not_shown(self) -> None:
        make_run(name="codeinfo", path="/src/codeinfo", state="embedding")
        assert "codeinfo" not in self.shown()

    def test_progress_questions_and_failure(self) -> None:
        root = make_root("flask")
        run = make_run(name="flask", path=root.path, state="embedding", file_index=3, file_total=9)
        assert "3 / 9 files" in self.shown()
        IngestRun.objects.filter(id=run.id).update(state="completed", root=root)
        assert f"/ui/chat/questions?root={root.id}" in self.shown()
        IngestRun.objects.filter(id=run.id).update(state="error", last_error="It broke.")
        assert "It broke." in self.shown()
        assert "/ui/chat/questions" not in self.shown()

    def test_a_finished_ingest_elsewhere_offers_to_ask_about_it(self, client: Client) -> None:
        root = make_root("my flask/x")
        run = make_run(name=root.name, path=root.path, state="completed", root=root)
        assert 'href="/chat?repo=my%20flask%2Fx"' in client.get("/ingest").content.decode()
        IngestRun.objects.filter(id=run.id).update(dry_run=True)
        assert "/chat?repo=" not in client.get("/ingest").content.decode()


def test_git_counts_what_is_on_disk(base: Path) -> None:
    made = repository(base, "sized", {"a.py": "x" * 100})
    assert git(made, "ls-files") == "a.py\n"
    assert git_folders.git_folders().folders[0].size == 100
    assert not Root.objects.exists()
