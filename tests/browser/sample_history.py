"""A repository for pictures: commits, a file with another name, a change, a tag."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

OLD, NEW = "src/berth.py", "src/harbour/berths.py"
BERTHS = """\
\"\"\"Berths of a harbour.\"\"\"

MAX_LENGTH = 90


def fits(ship, berth):
    return ship.length <= berth.length


def berth_of(ship, berths):
    for berth in berths:
        if fits(ship, berth):
            return berth
    return None
"""
FEWER = BERTHS.replace("ship.length <= berth.length", "ship.length < berth.length")
DEEPER = BERTHS.replace(
    "    return ship.length",
    "    if ship.draught > berth.depth:\n        return False\n    return ship.length",
)
USERS = {
    "src/harbour/master.py": (
        "from src.harbour.berths import berth_of\n\n\nclass Master:\n"
        "    def admit(self, ship):\n        return berth_of(ship, self.berths)\n\n"
        "    def berths_for(self, fleet):\n        return [self.admit(ship) for ship in fleet]\n"
    ),
    "src/harbour/radio.py": (
        "from src.harbour.master import Master\n\n\n"
        "def answer(call):\n    return Master().admit(call.ship)\n"
    ),
    "tests/test_berths.py": (
        "from src.harbour.berths import berth_of, fits\n\n\n"
        "def test_a_ship_of_its_length_fits(ship, berth):\n    assert fits(ship, berth)\n\n\n"
        "def test_the_first_berth_is_taken(ship, berths):\n"
        "    assert berth_of(ship, berths) is berths[0]\n"
    ),
}


def make(folder: Path) -> Path:
    """Three commits and the tag `v1`; what is in the folder was not committed."""

    def git(*arguments: str) -> None:
        person = ("-c", "user.name=Ada Keeper", "-c", "user.email=ada@example.org")
        command = ["git", "-C", str(folder), *person, "-c", "commit.gpgsign=false", *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def write(files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def commit(*message: str) -> None:
        git("add", ".")
        git("commit", "-q", *(f"-m{line}" for line in message))

    write({OLD: FEWER})
    git("init", "-q")
    commit("Find a berth for a ship")
    git("tag", "v1")
    write(USERS)
    git("mv", OLD, NEW)
    commit("Berths belong to the harbour")
    write({NEW: BERTHS})
    commit("A ship of the length of its berth fits", "The pilots have shown it for years.")
    write({NEW: DEEPER})
    return folder
