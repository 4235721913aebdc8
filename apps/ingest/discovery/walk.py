"""Lists the files of a folder, of the repositories in it, and what their rules leave out.

One pass over the disk finds tracked and other files: git's index says which are tracked.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from apps.core.errors import Unavailable
from apps.index.root_directory import (
    MAX_DEPTH,
    SYMBOLIC_LINK,
    TOO_DEEP,
    Entry,
    RootDirectory,
    is_unreadable,
    reason_of,
)
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery import evidence, own_data
from apps.ingest.discovery.eligibility import BY_NAME, Rules
from apps.ingest.discovery.folder_rules import (
    OWN_FILES,
    REFUSED,
    FolderRules,
    repository_ignores,
    rules_above,
)
from apps.ingest.discovery.git_index import Kind, lacks_index
from apps.ingest.discovery.left_out import OF_UNTRACKED, UNTRACKED, LeftOutCounter
from apps.ingest.discovery.refusal import refused
from apps.ingest.discovery.repository import Repository, common_dir, repository_at, work_tree_of
from apps.ingest.discovery.selection import Selection
from apps.ingest.discovery.tracked import NOT_CHECKED_OUT, Tracked
from apps.ingest.types import ListedFile

RULES_UNREADABLE = "Its ignore files cannot be read"
GIT = ".git"
# Also untracked ones are listed with these reasons.
NEVER_COUNTED = frozenset({REFUSED, own_data.REASON, SYMBOLIC_LINK, TOO_DEEP})
SUBMODULE = "Submodule"
NESTED = "Nested repository"
OWN_WORKTREE = "Worktree of the same repository"
# Limits of the repositories below a root.
MAX_NESTED = 1_000
MAX_NESTED_DEPTH = 10


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to be listed.

    selected: which of its entries are looked at
    is_named: its name is one of `BY_NAME`, so `evidence` decides about its tracked files
    """

    path: str
    rules: FolderRules
    selected: Selection
    is_submodule: bool = False
    is_named: bool = False


@dataclass
class Walk:
    """One pass over a root. Links are not followed.

    root: the real path of `directory`
    untracked: whether files are listed that git neither tracks nor ignores
    nested: whether submodules and clones are entered; None: as any folder
    selection: the paths that are looked at
    check: called for each folder
    """

    directory: RootDirectory
    root: Path
    rules: Rules
    untracked: bool
    nested: bool | None
    selection: Selection = None
    check: Check = never_cancelled
    left_out: LeftOutCounter = field(default_factory=LeftOutCounter)
    _nested: int = 0

    def files(self, tracked: Tracked) -> Iterator[ListedFile]:
        """Yield the selected files below the root, and the folders that are not entered."""
        try:
            rules = self._rules_of_root(tracked.repository)
        except OSError:
            yield ListedFile("", RULES_UNREADABLE, unreadable=True)
            return
        yield from self._work_tree(_Folder("", rules, self.selection), tracked, ())

    def _rules_of_root(self, repository: Repository | None) -> FolderRules:
        if repository:
            ignores = repository_ignores(common_dir(repository.git_dir))
            return rules_above(repository.work_tree, self.root, ignores)
        work_tree, git_dir = work_tree_of(self.root)
        rules = rules_above(
            work_tree, self.root, repository_ignores(git_dir and common_dir(git_dir))
        )
        if rules.untracked:
            # The folder was chosen though it is ignored, perhaps by `*` in a home folder.
            return replace(rules, untracked="", ignores=None)
        return rules

    def _work_tree(
        self, top: _Folder, tracked: Tracked, outer: tuple[Repository, ...]
    ) -> Iterator[ListedFile]:
        """Yield the files of a work tree, and those of the repositories in it.

        outer: the repositories around it, from the outermost
        """
        around = (*outer, tracked.repository) if tracked.repository else outer
        folders = [top]
        while folders:
            folder = folders.pop()
            self.check()
            try:
                # Of a few selected files, the status is read when it is needed.
                every = folder.selected is None
                entries = self.directory.entries(folder.path, with_status=every)
            except OSError as error:
                tracked.close(folder.path)
                yield ListedFile(folder.path, reason_of(error), is_unreadable(error))
                continue
            names = {entry.name for entry in entries}
            if folder is not top and self._is_repository(folder, names, tracked):
                tracked.close(folder.path)
                yield from self._repository(folder, names, around)
                continue
            folder, reason = self._with_own_rules(folder, names)
            if reason:
                tracked.close(folder.path)
                yield ListedFile(folder.path, reason, unreadable=reason == RULES_UNREADABLE)
                continue
            tracked.enter(folder.path)
            for entry in entries:
                if folder.selected is not None and not _is_told(entry, folder.selected):
                    continue
                item = self._entry(entry, folder, tracked)
                if isinstance(item, ListedFile):
                    yield item
                elif item:
                    folders.append(item)
        yield from tracked.missing()

    def _is_repository(self, folder: _Folder, names: Set[str], tracked: Tracked) -> bool:
        """Whether a folder is a submodule or a clone, and none of its files belongs to the
        repository around it."""
        if self.nested is None:
            return False
        return folder.is_submodule or (GIT in names and not tracked.has_below(folder.path))

    def _repository(
        self, folder: _Folder, names: Set[str], around: tuple[Repository, ...]
    ) -> Iterator[ListedFile]:
        """Yield the files of a repository in another one, or why it is not entered."""
        kind = SUBMODULE if folder.is_submodule else NESTED
        reason = self._refuse_repository(kind, names, len(around))
        if reason:
            yield ListedFile(folder.path, reason)
            return
        self._nested += 1
        try:
            inner = self._opened(folder, around)
        except Unavailable as error:
            yield ListedFile(folder.path, f"{kind}: {error.message}")
        except OSError as error:
            yield ListedFile(folder.path, f"{kind}: {reason_of(error)}", is_unreadable(error))
        else:
            if isinstance(inner, str):
                yield ListedFile(folder.path, inner)
            else:
                yield from self._work_tree(*inner, around)

    def _opened(
        self, folder: _Folder, around: tuple[Repository, ...]
    ) -> tuple[_Folder, Tracked] | str:
        """Return a repository's folder under its own rules, and what it tracks, or why it is not
        entered. Raises Unavailable GIT_FAILED, and OSError."""
        path = self.root / folder.path
        repository = repository_at(path)
        if repository is None:
            return NOT_CHECKED_OUT
        common = common_dir(repository.git_dir)
        if any(common == common_dir(outer.git_dir) for outer in around):
            return OWN_WORKTREE
        rules = folder.rules.nested(repository_ignores(common))
        tracked = Tracked(repository, path, self.check, self.selection, folder.path)
        if tracked.is_empty and lacks_index(repository):
            raise refused("has no index. `git reset` makes it again")
        return _Folder(folder.path, rules, folder.selected), tracked

    def _refuse_repository(self, kind: str, names: Set[str], depth: int) -> str:
        if not self.nested:
            return kind
        if GIT not in names:
            return NOT_CHECKED_OUT
        if depth > MAX_NESTED_DEPTH:
            return f"{kind}: over {MAX_NESTED_DEPTH} repositories in each other"
        if self._nested >= MAX_NESTED:
            return f"{kind}: over {MAX_NESTED:,} repositories in one"
        return ""

    def _with_own_rules(self, folder: _Folder, names: Set[str]) -> tuple[_Folder, str]:
        """Return the folder with the rules of its own files, and why it is left out, or ""."""
        try:
            rules = folder.rules.with_files(self.directory, folder.path, names)
        except OSError:
            # The ignored files may be private, or very many. So the folder is skipped until they
            # can be read.
            return folder, RULES_UNREADABLE
        reason = ""
        if folder.is_named:
            reason = evidence.reason_against(self.directory, folder.path, names)
        elif rules.judged:
            reason = evidence.reason_against_crate(folder.path, names)
        if reason and rules.attributes:
            # They may except files.
            rules, reason = replace(rules, evidence=reason), ""
        return folder if rules is folder.rules else replace(folder, rules=rules), reason

    def _entry(
        self, entry: Entry, folder: _Folder, tracked: Tracked
    ) -> ListedFile | _Folder | None:
        """Return an entry of a folder; a _Folder if it is to be entered, None if it is counted
        only."""
        name, rules = entry.name, folder.rules
        if name == GIT and tracked.repository:
            return None
        path = f"{folder.path}{name}"
        shown = f"{path}/" if entry.is_folder else path
        kind = tracked.take(path)
        is_tracked = kind is not None or (entry.is_folder and tracked.has_below(shown))
        choice = rules.choice(name, is_folder=entry.is_folder) if rules.choices else None
        reason = self._refuse(entry, shown, rules, is_tracked, choice)
        counted = tracked.repository is not None and not is_tracked
        if counted and not reason and not entry.is_folder:
            reason = self._refuse_untracked(path, choice)
        if reason:
            tracked.close(shown)
            if not counted or reason in NEVER_COUNTED:
                return ListedFile(shown, reason, status=entry.status)
            self.left_out.add(shown, reason)
            return None
        if entry.is_folder:
            inner = rules.below(name, is_tracked=is_tracked, choice=choice)
            return _Folder(
                shown,
                inner,
                folder.selected and folder.selected[name],
                is_submodule=kind is Kind.SUBMODULE,
                is_named=is_tracked and name in BY_NAME and choice is not False,
            )
        problem = rules.problem_of(name) if name in OWN_FILES else ""
        return ListedFile(path, problem, False, choice is False, entry.status)

    def _refuse_untracked(self, path: str, choice: bool | None) -> str:
        if not self.untracked:
            return UNTRACKED
        reason = self.rules.refuse_name(path, chosen=choice is False)
        return reason if reason in OF_UNTRACKED else ""

    def _refuse(
        self, entry: Entry, shown: str, rules: FolderRules, is_tracked: bool, choice: bool | None
    ) -> str:
        """Return why an entry is left out; "" if it is to be looked at."""
        reason = self.rules.refuse_path(
            shown, entry.name, tracked=is_tracked, chosen=choice is False
        )
        if not reason and choice:
            reason = REFUSED
        if not reason and not is_tracked:
            reason = rules.untracked_reason(entry.name, is_folder=entry.is_folder)
        if not reason and entry.is_link:
            return SYMBOLIC_LINK
        if not reason and entry.is_folder and shown.count("/") > MAX_DEPTH:
            return TOO_DEEP
        if not reason and is_tracked and choice is None and rules.judged:
            return "" if entry.is_folder else rules.evidence_against(entry.name)
        return reason


def _is_told(entry: Entry, selected: dict[str, Selection]) -> bool:
    return entry.name in selected and (entry.is_folder or selected[entry.name] is None)
