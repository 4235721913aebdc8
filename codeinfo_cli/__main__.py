"""`python -m codeinfo_cli`, and the entry point of the command `codeinfo`.

Ctrl-C ends the command silently while it imports its modules.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from codeinfo_cli.main import main

if __name__ == "__main__":
    main()
