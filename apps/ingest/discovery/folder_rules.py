"""The rules for the entries of a folder: those of the folders above it, and of its own files."""

from collections.abc import Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from apps.index.root_directory import RootDirectory, is_unreadable
from apps.ingest.discovery import attributes, gitignore, user_config
from apps.ingest.discovery.attributes import Attributes, add_attributes, reason_of
from apps.ingest.discovery.eligibility import BY_NAME, EXCLUDED_BY_NAME
from apps.ingest.discovery.gitignore import Patterns, read_patterns

IGNORED = "Ignored by .gitignore"
CHOICES = ".codeinfoignore"
REFUSED = f"Ignored by {CHOICES}"
OWN_FILES = frozenset({gitignore.NAME, CHOICES, attributes.NAME})


@dataclass(frozen=True, slots=True)
class FolderRules:
    """What applies to the entries of a folder.

    ignores: what git ignores
    choices: the `.codeinfoignore` files, which count for nested repositories, too
    attributes: the `.gitattributes` files
    inside: the folder in its work tree; "" or a path with a slash at its end
    chosen_from: the folder in the outermost work tree, in the same form
    untracked: why untracked entries are left out; "" if they are not
    evidence: why tracked files are left out, unless `attributes` say otherwise; "" if they are not
    judged: whether the folder is in one of `BY_NAME`
    """

    ignores: Patterns | None = None
    choices: Patterns | None = None
    attributes: Attributes = field(default_factory=dict)
    inside: str = ""
    chosen_from: str = ""
    untracked: str = ""
    evidence: str = ""
    judged: bool = False

    def below(
        self, name: str, *, is_tracked: bool = False, choice: bool | None = None
    ) -> "FolderRules":
        """Return the rules for a folder in this one, before its own files are read.

        is_tracked: whether git tracks files below it
        choice: as `choice` returns
        """
        untracked, judged = self.untracked, self.judged and choice is None
        if is_tracked and choice is None and name in BY_NAME:
            judged, untracked = True, untracked or f"{EXCLUDED_BY_NAME}: {name}/"
        elif is_tracked:
            untracked = self.untracked_reason(name, is_folder=True)
        return FolderRules(
            self.ignores,
            self.choices,
            self.attributes,
            f"{self.inside}{name}/",
            f"{self.chosen_from}{name}/",
            untracked,
            self.evidence if choice is None else "",
            judged,
        )

    def nested(self, repository_ignores: Patterns | None) -> "FolderRules":
        """Return the rules for a repository whose work tree is this folder."""
        return FolderRules(
            ignores=repository_ignores, choices=self.choices, chosen_from=self.chosen_from
        )

    def choice(self, name: str, *, is_folder: bool) -> bool | None:
        """Return True if a `.codeinfoignore` leaves out an entry, False if it includes it, and None
        if it does neither."""
        if self.choices is None:
            return None
        return self.choices.matches(f"{self.chosen_from}{name}", is_folder=is_folder)

    def untracked_reason(self, name: str, *, is_folder: bool) -> str:
        """Return why an entry is left out if git does not track it; "" if it is not."""
        if self.untracked or self.ignores is None:
            return self.untracked
        ignored = self.ignores.matches(f"{self.inside}{name}", is_folder=is_folder)
        return IGNORED if ignored else ""

    def evidence_against(self, name: str) -> str:
        """Return why a tracked file is left out that is in one of `BY_NAME`; "" if it is not."""
        reason = reason_of(self.attributes, f"{self.inside}{name}")
        return self.evidence if reason is None else reason

    def with_files(
        self, directory: RootDirectory, folder: str, names: Set[str] = OWN_FILES
    ) -> "FolderRules":
        """Return the rules with those of the folder's own files.

        folder: its path in `directory`
        names: of its entries

        Raises OSError if a file cannot be read.
        """
        if names.isdisjoint(OWN_FILES):
            return self
        found = {name: read_patterns(directory, f"{folder}{name}") for name in OWN_FILES & names}
        ignores, choices, attributed = self.ignores, self.choices, self.attributes
        if content := found.get(gitignore.NAME):
            ignores = Patterns(self.inside, content, ignores)
        if content := found.get(CHOICES):
            choices = Patterns(self.chosen_from, content, choices, CHOICES)
        if content := found.get(attributes.NAME):
            attributed = add_attributes(self.inside, content, attributed)
        return replace(self, ignores=ignores, choices=choices, attributes=attributed)

    def problem_of(self, name: str) -> str:
        """Return why some patterns of the folder's own file `name` are ignored, or ""."""
        own = ((self.ignores, self.inside), (self.choices, self.chosen_from))
        return next(
            (
                patterns.problem
                for patterns, folder in own
                if patterns is not None and patterns.path == f"{folder}{name}"
            ),
            "",
        )


def repository_ignores(common_dir: Path | None) -> Patterns | None:
    """Return the rules that apply to a whole work tree: the user's own, and `info/exclude`.

    common_dir: the git directory with the objects; None if there is none

    Raises OSError if `info/exclude` cannot be read.
    """
    ignores = None
    for content in (user_config.excludes(), common_dir and _exclude_file(common_dir)):
        if content:
            ignores = Patterns("", content, ignores, "")
    return ignores


def _exclude_file(common_dir: Path) -> bytes | None:
    try:
        with RootDirectory(common_dir) as directory:
            return read_patterns(directory, "info/exclude")
    except OSError as error:
        if is_unreadable(error):
            raise
        return None


def rules_above(work_tree: Path, root: Path, ignores: Patterns | None) -> FolderRules:
    """Return the rules for `root` from the folders above it, up to the top of its work tree.

    Raises OSError if one of their files cannot be read.
    """
    rules = FolderRules(ignores=ignores)
    folder = ""
    if root == work_tree:
        return rules
    with RootDirectory(work_tree) as directory:
        for name in root.relative_to(work_tree).parts:
            rules = rules.with_files(directory, folder)
            path = f"{folder}{name}"
            if rules.ignores and rules.ignores.matches(path, is_folder=True):
                rules = replace(rules, untracked=IGNORED)
            folder = f"{path}/"
            rules = rules.below(name)
    return rules
