"""The entry point of the command `codeinfo`; also `python -E -P codeinfo_cli/__main__.py`, from any
folder.

Ctrl-C ends the command silently while it imports its modules.
"""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

if not __package__:  # started as a file
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from codeinfo_cli.main import main

if __name__ == "__main__":
    main()
