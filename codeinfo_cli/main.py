"""The command line: `codeinfo VERB …`."""

import sys

import click

from codeinfo_cli import manage_verb, project, server


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Answers questions about source code with cited lines."""


@main.command()
def serve() -> None:
    """Serve pages, API and MCP until Ctrl-C."""
    project.use()
    if project.IS_INSTALLED:
        server.choose_ports()
    django("serve")


def django(*arguments: str) -> None:
    """Run a command of Django's command line."""
    from manage import main as manage  # noqa: PLC0415 - found by `project.use`

    manage(["codeinfo", *arguments])


main.add_command(manage_verb.manage)

if __name__ == "__main__":
    sys.exit(main())
