#!/usr/bin/env python
"""Django's command line: `manage.py serve` runs the product."""

import faulthandler
import os
import sys
from collections.abc import Sequence

from django.core.management import execute_from_command_line


def main(arguments: Sequence[str]) -> None:
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
    try:
        execute_from_command_line(list(arguments))
    except Exception as error:
        # Errors of the environment get a message without a traceback.
        from apps.core.system.start_errors import sentence  # noqa: PLC0415

        if not (message := sentence(error)):
            raise
        sys.exit(f"codeinfo cannot start: {message}")


if __name__ == "__main__":
    main(sys.argv)
