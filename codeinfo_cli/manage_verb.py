"""`codeinfo manage`: Django's command line, for the commands that have no verb."""

import click

from codeinfo_cli import project


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manage(arguments: tuple[str, ...]) -> None:
    """Run a command of Django's command line, such as verify_index or createsuperuser."""
    project.use()
    from manage import main as django  # noqa: PLC0415 - found by `project.use`; imports Django

    django(["codeinfo manage", *arguments])
