"""`python -m tests.soak.clocked FILE ARGUMENTS`: manage.py under a clock that jumps.

The wall clock of the process is the real one and the seconds that FILE holds, which is looked at
several times a second. Time that is measured, and not told, goes on as it was.
"""

import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine
from django.core.management import execute_from_command_line

LOOK_SECONDS = 0.2


def follow(clock: Path, traveller: time_machine.Traveller) -> None:
    """Let the clock jump whenever the file says another number."""
    shown = 0
    while True:
        target_time = int(clock.read_text() or shown)
        if target_time != shown:
            traveller.shift(timedelta(seconds=target_time - shown))
            shown = target_time
        time.sleep(LOOK_SECONDS)


def main() -> None:
    clock, *arguments = sys.argv[1:]
    with time_machine.travel(datetime.now(UTC), tick=True) as traveller:
        threading.Thread(target=follow, args=(Path(clock), traveller), daemon=True).start()
        execute_from_command_line(["manage.py", *arguments])


if __name__ == "__main__":
    main()
