"""The project loads."""

from django.core.management import call_command


def test_the_project_passes_its_own_checks() -> None:
    call_command("check", fail_level="WARNING")
