"""Which files of old commits may be shown: those that an ingest would take.

Commits hold what was removed for a reason. So a path must be live, or pass the rules that an ingest
has for names, ignored ones included; and each text passes the rules for contents.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from apps.code.paths import folders_of
from apps.core.values.slices import slices
from apps.core.values.surrogates import has_surrogates
from apps.index import queries
from apps.index.models import Root
from apps.index.root_directory import MAX_DEPTH, MISSING, TOO_DEEP, RootDirectory
from apps.index.types import Area
from apps.ingest.discovery.discovery import BAD_NAME
from apps.ingest.discovery.eligibility import Rules
from apps.ingest.discovery.folder_rules import REFUSED, FolderRules, repository_ignores, rules_above
from apps.ingest.discovery.repository import Repository, common_dir
from apps.ingest.discovery.walk import RULES_UNREADABLE
from apps.retrieval.query import is_inside

OUTSIDE = "Outside of what may be looked into"
AT_ONCE = 500  # paths of one query
MOST_FOLDERS = 5_000  # whose rules are read for one answer
TOO_MANY = f"In more than {MOST_FOLDERS:,} folders"


class Visible:
    """The rule for the files of one root."""

    def __init__(self, root: Root, repository: Repository, areas: Sequence[Area]) -> None:
        self._root, self._repository, self._areas = root, repository, areas
        self._rules = Rules.of(Path(root.path))

    def reasons(self, paths: Collection[str]) -> dict[str, str]:
        """Return why files, by their paths in the root, are not shown; "" for those that are. The
        path of a folder ends with a slash."""
        reasons = _unusable(paths)
        paths = [path for path in paths if path not in reasons]
        known = self._known({place for path in paths for place in (path, *folders_of(path))})
        others: list[str] = []
        for path in paths:
            rows = [known[place] for place in (*folders_of(path), path) if place in known]
            # git tracks it, and it is not in the work tree: no rule has looked at it.
            rows = [] if rows == [MISSING] else rows
            if not is_inside(self._areas, self._root, path):
                reasons[path] = OUTSIDE
            elif rows:
                # That of the uppermost folder comes first, that of the file is the only one else.
                reasons[path] = rows[0]
            else:
                others.append(path)
        return reasons | (self._by_name(others) if others else {})

    def refuse(self, path: str, data: bytes) -> str:
        """Return why a text of a file is not shown; "" if it is."""
        rules = self._rules
        if not data:
            return ""  # an empty file
        refused = rules.refuse_size(len(data)) or rules.refuse_content(path, data)
        return refused or rules.refuse_kind(path, data) or ""

    @property
    def max_bytes(self) -> int:
        """Size of the largest file that is shown."""
        return self._rules.max_bytes

    def _known(self, places: Collection[str]) -> dict[str, str]:
        """The skip reason of the live rows at some paths; those of folders end with a slash."""
        known: dict[str, str] = {}
        for some in slices(sorted(places), AT_ONCE):
            rows = queries.live_files(self._root).filter(path__in=some)
            known.update(rows.values_list("path", "skip_reason"))
        return known

    def _by_name(self, paths: Collection[str]) -> dict[str, str]:
        """Return why files that an ingest has not seen would be left out."""
        root = Path(self._root.path)
        try:
            ignores = repository_ignores(common_dir(self._repository.git_dir))
            top = self._repository.work_tree
            above = rules_above(top, root, ignores) if root.is_relative_to(top) else FolderRules()
            with RootDirectory(root) as directory:
                below = {"": above.with_files(directory, "")}
                return {path: self._reason(path, directory, below) for path in paths}
        except OSError:
            return dict.fromkeys(paths, RULES_UNREADABLE)

    def _reason(self, path: str, directory: RootDirectory, below: dict[str, FolderRules]) -> str:
        *folders, name = path.split("/")
        inside = ""
        for part in folders:
            rules, place = below[inside], f"{inside}{part}/"
            reason, choice = self._entry(place, part, rules, is_folder=True)
            if reason:
                return reason
            if place not in below:
                below[place] = rules.below(part, choice=choice).with_files(directory, place)
            inside = place
        if not name:
            return ""  # a folder
        reason, choice = self._entry(path, name, below[inside], is_folder=False)
        return reason or self._rules.refuse_name(path, chosen=choice is False) or ""

    def _entry(
        self, path: str, name: str, rules: FolderRules, *, is_folder: bool
    ) -> tuple[str, bool | None]:
        """Why an entry of a folder is left out, as one that git does not track, and what a
        `.codeinfoignore` says of it."""
        choice = rules.choice(name, is_folder=is_folder)
        reason = self._rules.refuse_path(path, name, tracked=False, chosen=choice is False)
        if not reason and choice:
            reason = REFUSED
        return reason or rules.untracked_reason(name, is_folder=is_folder), choice


def _unusable(paths: Iterable[str]) -> dict[str, str]:
    """Why paths are not even looked for. A tree may name what no file system can, and with a
    few objects any number of folders."""
    reasons: dict[str, str] = {}
    folders: set[str] = set()
    for path in sorted(paths):
        if {".", ".."} & set(path.split("/")):
            reasons[path] = OUTSIDE
        elif has_surrogates(path):
            reasons[path] = BAD_NAME
        elif path.count("/") > MAX_DEPTH:
            reasons[path] = TOO_DEEP
        elif len(folders) + len(more := set(folders_of(path)) - folders) > MOST_FOLDERS:
            reasons[path] = TOO_MANY
        else:
            folders |= more
    return reasons
