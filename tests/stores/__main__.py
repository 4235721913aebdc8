"""`python -m tests.stores [pytest arguments]`: the chosen tests on PostgreSQL, Redis and Chroma's
server, which are started for it and stopped again. `make test-stores` installs what it needs.
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

# Threads of tests may end with their connection open: psycopg warns of it, and PostgreSQL does not
# drop the tests' database then, which goes with its server anyway.
LENIENT = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "--reuse-db")


@contextmanager
def database_of(folder: Path) -> Iterator[str]:
    """The one that TEST_DATABASE_URL names (`make test-mongodb`), else a new PostgreSQL."""
    if named := os.environ.get("TEST_DATABASE_URL"):
        yield named
    else:
        with servers.postgres(folder / "postgres") as database:
            yield database


def main(arguments: list[str]) -> int:
    # Debian's user of PostgreSQL must be able to reach its folder.
    with tempfile.TemporaryDirectory(prefix="codeinfo-stores-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (
            database_of(folder) as database,
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
