"""`python -m tests.stores [pytest arguments]`: the chosen tests on PostgreSQL, Redis and Chroma's
server, and then on MongoDB in PostgreSQL's place. All are started for it and stopped again;
`make test-stores` installs what it needs. TEST_STORES names one of both databases, and
TEST_DATABASE_URL a server of yours, on which they run alone.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stores import servers
from tests.stores.chosen import CHOSEN

DATABASES = {"postgresql": servers.postgres, "mongodb": servers.mongodb}
# Threads of tests may end with their connection open: psycopg warns of it, and PostgreSQL does not
# drop the tests' database then, which goes with its server anyway.
LENIENT = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "--reuse-db")


@contextmanager
def database_of(name: str, folder: Path) -> Iterator[str]:
    if named := os.environ.get("TEST_DATABASE_URL"):
        yield named
    else:
        with DATABASES[name](folder / name) as database:
            yield database


def run_on(name: str, arguments: list[str]) -> int:
    """Run the tests on one database. Return pytest's exit status."""
    # Debian's user of PostgreSQL must be able to reach its folder.
    with tempfile.TemporaryDirectory(prefix="codeinfo-stores-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        with (
            database_of(name, folder) as database,
            servers.redis_server(folder / "redis") as redis,
            servers.chroma(folder / "chroma") as chroma,
        ):
            print(f"On {database}, {redis} and {chroma}", flush=True)
            named = any(not argument.startswith("-") for argument in arguments)
            selected = arguments if named else [*CHOSEN, *arguments]
            stores = {"DATABASE_URL": database, "REDIS_URL": redis, "CHROMA_URL": chroma}
            environ = os.environ | {f"TEST_{name}": url for name, url in stores.items()}
            command = [sys.executable, "-m", "pytest", *LENIENT, *selected]
            return subprocess.run(command, env=environ, check=False).returncode


def main(arguments: list[str]) -> int:
    only = os.environ.get("TEST_STORES")
    if os.environ.get("TEST_DATABASE_URL") and not only:
        only = "yours"
    return max([run_on(name, arguments) for name in ([only] if only else DATABASES)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
