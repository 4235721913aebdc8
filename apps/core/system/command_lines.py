"""The command lines that messages name: those of a checkout, or of an installed wheel."""

from apps.core.config import IS_INSTALLED

# These commands of Django's command line are verbs of `codeinfo` too.
VERBS = frozenset({"backup", "doctor", "restore", "serve", "worker"})
# The extras that each checkout has.
OF_CHECKOUT = frozenset({"chroma", "pages", "traces"})


def manage(command: str) -> str:
    """Return how a command of Django's command line is run here, such as "verify_index --json"."""
    if not IS_INSTALLED:
        return f"manage.py {command}"
    return f"codeinfo {command}" if command.split()[0] in VERBS else f"codeinfo manage {command}"


def verb(command: str) -> str:
    """Return how a verb of the command is run here, such as "install codex"."""
    return f"codeinfo {command}" if IS_INSTALLED else f".venv/bin/codeinfo {command}"


def install_extra(name: str) -> str:
    """Return how an extra of the wheel, such as codex, is installed here."""
    if IS_INSTALLED:
        return f"pip install 'codeinfo[{name}]'"
    file = "requirements.txt" if name in OF_CHECKOUT else f"requirements-{name}.txt"
    return f".venv/bin/pip install --require-hashes -r {file}"
