"""Small repositories that change at random, the same way for the same seed."""

import shutil
from pathlib import Path
from random import Random

from tests.support.git import git, init

NAMES = ("alpha", "beta", "gamma", "outer", "outer/inner")
IN_GIT = ("beta",)
FEWEST, MOST = 24, 60
# One that takes several batches, and seconds: a fault often falls into its ingest.
LARGE, MOST_OF_LARGE = "gamma", 400
_WORDS = (
    "retry backoff queue worker vector chunk parse token stream socket session cookie header "
    "router handler cache lease shard index cursor page batch ledger invoice order customer"
)
WORDS = _WORDS.split()


def make(base: Path, rng: Random) -> list[Path]:
    """All repositories below `base`, those that are there already as they are."""
    folders = [base / name for name in NAMES]
    for folder in folders:
        if not folder.exists():
            folder.mkdir(parents=True)
            for number in range(rng.randrange(most_of(folder) // 2, most_of(folder))):
                write_file(folder, number, rng)
            if folder.name in IN_GIT:
                init(folder)
                git(folder, "add", "-A")
    return folders


def most_of(folder: Path) -> int:
    """The most files that a repository has."""
    return MOST_OF_LARGE if folder.name == LARGE else MOST


def write_file(folder: Path, number: int, rng: Random) -> None:
    """Write file `number` with other contents than before."""
    suffix = (".py", ".js", ".md", ".txt")[number % 4]
    path = folder / f"part{number % 5}" / f"file{number}{suffix}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_text(suffix, rng))


def _text(suffix: str, rng: Random) -> str:
    def name() -> str:
        return f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{rng.randrange(1000)}"

    parts = []
    for _ in range(rng.randrange(1, 12)):
        sentence = " ".join(rng.choices(WORDS, k=12))
        match suffix:
            case ".py":
                parts.append(f'def {name()}(value):\n    """{sentence}."""\n    return value\n\n')
            case ".js":
                parts.append(f"// {sentence}\nfunction {name()}(value) {{\n  return value;\n}}\n")
            case _:
                parts.append(f"# {name()}\n\n{sentence}.\n\n")
    return "\n".join(parts)


def edit(folder: Path, rng: Random) -> str:
    """Change, add, rename or delete some files; what was done, in words."""
    files = sorted(path for path in folder.glob("part*/*") if path.is_file())
    if rng.random() < 0.4:
        for number in range(most_of(folder)):
            write_file(folder, number, rng)
        return "write all"
    done = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(("write", "write", "delete", "rename", "empty"))
        path = rng.choice(files)
        if kind == "write" or not path.exists():
            write_file(folder, rng.randrange(most_of(folder)), rng)
        elif kind == "delete" and len(files) > FEWEST:
            path.unlink()
            files.remove(path)
        elif kind == "rename":
            path.rename(path.with_name(f"moved{rng.randrange(1000)}{path.suffix}"))
            files.remove(path)
        else:
            path.write_text("")
        done.append(kind)
    if folder.name in IN_GIT:
        git(folder, "add", "-A")
    return "+".join(done)


def vanish(folder: Path) -> Path:
    """Take a repository away; `bring_back` puts it where it was."""
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    return away


def bring_back(folder: Path) -> None:
    away = folder.with_name(f"{folder.name}-away")
    if away.exists():
        if folder.exists():
            shutil.rmtree(folder)
        away.rename(folder)
