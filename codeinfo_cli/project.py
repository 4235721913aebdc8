"""Where the project tree and the data folder are.

In a checkout, the project tree is the folder of this package, and the data folder is `./data`.
In a wheel, the project tree is the folder `project` in this package, so that its packages `apps`
and `codeinfo` do not clash with others in site-packages; the data folder is the user's.
"""

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

from codeinfo_cli.errors import CliError

PACKAGE = Path(__file__).resolve().parent
IS_INSTALLED = (PACKAGE / "project").is_dir()
PROJECT = PACKAGE / "project" if IS_INSTALLED else PACKAGE.parent
# Without these options Python imports modules from the current folder: -m and -c put it first, and
# PYTHONPATH has it if an entry is empty or relative. It may be a repository of somebody else's.
FLAGS = ("-E", "-P")


def settings_file() -> Path:
    """Return the `.env` file. It need not exist. Of a wheel, it is in the user's folder of
    settings, such as ~/.config/codeinfo."""
    if not IS_INSTALLED:
        return PROJECT / ".env"
    import platformdirs  # noqa: PLC0415 - a checkout does not need it

    try:
        return Path(platformdirs.user_config_dir("codeinfo", appauthor=False)) / ".env"
    except RuntimeError:  # The user has no home folder.
        return Path("/nonexistent")


def make_importable() -> None:
    """Make the packages of the project importable."""
    if str(PROJECT) not in sys.path:
        sys.path.insert(0, str(PROJECT))


def use() -> None:
    """Make the project importable, and set its environment in this process.

    As the product does, read `.env`; variables that are set win. A relative data folder in `.env`
    is one of its folder, whatever the current folder is. Programs are not looked for in the
    current folder, which PATH may name.
    """
    make_importable()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders))
    if (settings := settings_file()).is_file():
        import environ  # noqa: PLC0415 - takes a tenth of a second

        is_set = "CODEINFO_DATA_DIR" in os.environ
        environ.Env.read_env(settings)
        if not is_set and (named := os.environ.get("CODEINFO_DATA_DIR")):
            os.environ["CODEINFO_DATA_DIR"] = str(settings.parent / Path(named).expanduser())
    set_defaults(os.environ)


def set_defaults(environment: MutableMapping[str, str]) -> None:
    """Set the variables of a server of this installation. Values of the user win."""
    environment.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
    if IS_INSTALLED:
        environment.setdefault("CODEINFO_DATA_DIR", str(data_dir()))
        environment.setdefault("CODEINFO_FIRST_ROOT", "none")


def data_dir() -> Path:
    """Return the data folder of the verbs. It need not exist. Raises CliError for a user without a
    home folder that it would be in."""
    named = os.environ.get("CODEINFO_DATA_DIR")
    if not named:
        if not IS_INSTALLED:
            return PROJECT / "data"
        import platformdirs  # noqa: PLC0415 - a checkout does not need it
    try:
        path = named or platformdirs.user_data_dir("codeinfo", appauthor=False)
        return Path(path).expanduser().absolute()
    except RuntimeError:
        message, step = "Your user has no home folder.", "CODEINFO_DATA_DIR names a data folder."
        raise CliError(message, "NO_HOME", next_step=step) from None
