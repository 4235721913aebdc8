"""The product, whose drawing of a diagram with the word `endless` does not end.

`python -m tests.site.computing_server`. Beside the data folder are the keys of sessions of two
users who are not staff: `ada.session` and `grace.session`.
"""

import os
import sys

from django.core.management import call_command, execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")

ENDLESS = """
import io, sys, time
text = sys.stdin.read()
if "endless" in text:
    time.sleep(600)
sys.stdin = io.StringIO(text)
"""
USERS = ("ada", "grace")


def add_sessions() -> None:
    from django.contrib.auth.models import User  # noqa: PLC0415 - after django.setup
    from django.test import Client  # noqa: PLC0415

    from apps.core.config import config  # noqa: PLC0415

    for name in USERS:
        client = Client()
        client.force_login(User.objects.create_user(name))
        session = config().data_dir.parent / f"{name}.session"
        session.write_text(client.cookies["sessionid"].value)


def main() -> None:
    from apps.conversations.answers import diagrams  # noqa: PLC0415

    diagrams.DRAW = ENDLESS + diagrams.DRAW
    diagrams.TIME_LIMIT_SECONDS = 600.0
    call_command("migrate", verbosity=0)
    add_sessions()
    execute_from_command_line(["manage.py", "serve"])


if __name__ == "__main__":
    import django

    django.setup()
    sys.exit(main())
