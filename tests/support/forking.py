"""`python -m tests.support.forking SOCKET LIBRARIES`: forks the processes of `forks`.

It has imported libraries, and nothing of the product: each process reads its own environment, and
runs its program from the first line on.
"""

import fcntl
import gc
import json
import os
import runpy
import socket
import sys
from importlib import import_module
from pathlib import Path

HOME = Path(__file__).parent.parent.parent
REQUEST_BYTES, MOST_DESCRIPTORS = 1 << 20, 8
ABOVE = 500


def program(asking: socket.socket) -> list[str]:
    """Return in each process that is forked for a request, with its command; end with who asks."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(asking, REQUEST_BYTES, MOST_DESCRIPTORS)
        if not request:
            os._exit(0)
        if not (pid := fork()):
            asking.close()
            return become(descriptors, *json.loads(request))
        for descriptor in descriptors:
            os.close(descriptor)
        asking.send(str(pid).encode())


def fork() -> int:
    """As os.fork. The parent of the process ends at once, so that it belongs to who asks."""
    told, tell = os.pipe()
    if between := os.fork():
        os.close(tell)
        os.waitpid(between, 0)
        pid = int(os.read(told, 20))
        os.close(told)
        return pid
    if pid := os.fork():
        os.write(tell, str(pid).encode())
        os._exit(0)
    os.close(told)
    os.close(tell)
    return 0


def become(
    descriptors: list[int],
    command: list[str],
    environ: dict[str, str],
    folder: str,
    in_session: bool,
    kept: list[int],
) -> list[str]:
    """Be as if this process had been started so. Returns the command."""
    # First out of the way: a number that is wanted may be one of these.
    above = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, ABOVE) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(above, (0, 1, 2, *kept), strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    if in_session:
        os.setsid()
    # Python sets it where an environment names no locale, as that of this process does not.
    locale = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update(locale | environ)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environ
    return command


def main(command: list[str]) -> None:
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(str(HOME / command[0]), run_name="__main__")


if __name__ == "__main__":
    # Twisted imports it for TLS; the server goes without.
    sys.modules["OpenSSL"] = None  # type: ignore[assignment]
    for library in sys.argv[2:]:
        import_module(library)
    del sys.modules["OpenSSL"]
    gc.freeze()
    main(program(socket.socket(fileno=int(sys.argv[1]))))
