"""The product, whose event loop stands still from the moment that STALL appears until it has gone.

`python -m tests.site.stalling_server` with STALL as the name of a file.
"""

import os
import sys
import time
from pathlib import Path

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")


def stand_still_when_told() -> None:
    from twisted.internet import reactor  # noqa: PLC0415 - daphne installs it first

    stall = Path(os.environ["STALL"])
    while stall.exists():
        time.sleep(0.05)
    reactor.callLater(0.1, stand_still_when_told)


def main() -> None:
    import apps.site.server  # noqa: PLC0415 - installs the reactor
    from apps.core.monitoring import watchdog  # noqa: PLC0415

    # A test does not wait for ten seconds.
    watchdog.Watchdog.__init__.__kwdefaults__.update(limit=0.5, beat=0.1)
    apps.site.server.reactor.callWhenRunning(stand_still_when_told)
    execute_from_command_line(["manage.py", "serve"])


if __name__ == "__main__":
    import django

    django.setup()
    sys.exit(main())
