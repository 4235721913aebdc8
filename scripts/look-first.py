"""Say at once what would end `make run` after its installation: a server that runs, or a port that
is taken. It needs no package, and leaves an older Python to `scripts/make-venv`."""

import os
import re
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent


def main() -> None:
    sys.path.insert(0, str(HOME))
    from codeinfo_cli import project, server  # noqa: PLC0415 - found by the line above

    try:
        project.use()
    except ModuleNotFoundError:  # what reads .env is not installed yet
        settings = re.findall(r"(?m)^(\w+)=['\"]?([^'\"\s#]+)", project.settings_file().read_text())
        for name, value in settings:
            os.environ.setdefault(name, value)
    if address := server.running(project.data_dir()):
        sys.exit(f"codeinfo runs already: {address.url}/chat (.venv/bin/codeinfo stop ends it)")
    try:
        port = server.taken_port()
    except ValueError:
        return  # the start says which setting is wrong
    if port:
        free = server.free_ports().get("PORT", "…")
        sys.exit(f"Port {port} is taken: stop what is there, or use another: make run PORT={free}")


if __name__ == "__main__" and sys.version_info >= (3, 11):
    main()
