#!/usr/bin/env python
"""Django's command line: `manage.py serve` runs the product."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A setting that cannot be right: its name and the reason are all there is to know.
        sys.exit(f"codeinfo cannot start: {error}")
