"""The command line: `codeinfo VERB …`."""

import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click

from codeinfo_cli import errors, project, terminal, verbs
from codeinfo_cli.errors import CliError

INTRODUCTION = """\
Answers questions about source code with cited lines.

\b
  codeinfo ingest ~/src/app                ingest a folder, once
  cd ~/src/app
  codeinfo search where are retries done   ask in words
  codeinfo grep 'raise \\w+Timeout'         find exact text

Verbs use the server of the data folder, and start one in the background if none is running. It
stops 15 minutes after the last verb. `codeinfo VERB --help` shows examples.
"""
ENDING = """\
--json writes the answer as JSON, also of an error. Exit status: 0; 1 nothing found; 2 error;
130 after Ctrl-C.
"""


# What other programs call a verb → the verb.
HABITS = {
    "add": "ingest",
    "blame": "history",
    "cat": "read",
    "find": "search",
    "index": "ingest",
    "list": "repos",
    "log": "history",
    "rg": "grep",
    "rm": "remove",
    "start": "serve",
    "version": "--version",
}


class Verbs(click.Group):
    """The group of the table in `verbs`; a verb's module is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name for verb in verbs.VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = verbs.BY_NAME.get(cmd_name)
        if verb is None:
            return None
        module, _, attribute = verb.command.partition(":")
        command: click.Command = getattr(import_module(f"codeinfo_cli.{module}"), attribute)
        details = cleandoc((command.callback.__doc__ if command.callback else "") or "")
        command.name = verb.name
        command.short_help = verb.summary
        command.help = f"{verb.summary}\n\n{details}"
        command.epilog = examples(verb)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in verbs.BY_NAME:
            near = HABITS.get(name, "").split() or get_close_matches(name, verbs.BY_NAME, 1)
            instead = f"Did you mean {near[0]!r}?" if near else "codeinfo --help lists them."
            raise click.UsageError(f"There is no verb {name!r}. {instead}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb. As with ripgrep, a reader that has enough (`| head`) is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # for click, a failure
            terminal.end_quietly()
            ctx.exit(errors.OK)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by group, from the table alone."""
        width = max(len(verb.name) for verb in verbs.VERBS)
        for group in verbs.GROUPS:
            of_group = [verb for verb in verbs.VERBS if verb.group == group]
            if of_group:
                with formatter.section(group):
                    formatter.write_dl([(v.name.ljust(width), v.summary) for v in of_group])


def examples(verb: verbs.Verb) -> str:
    """Return the examples of a verb as the end of its help, unwrapped (`\\b` is click's mark)."""
    width = max(len(command) for command, _ in verb.examples)
    lines = [f"  {command:{width}}  {meaning}" for command, meaning in verb.examples]
    return "\n".join(["\b", "Examples:", *lines])


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        project.make_importable()
        from apps.core import __version__  # noqa: PLC0415 - found by the line above

        terminal.out(f"codeinfo {__version__}")
        context.exit()


@click.command(
    cls=Verbs,
    help=INTRODUCTION,
    epilog=ENDING,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version,
    help="Write the version.",
)  # fmt: skip
def codeinfo() -> None:
    project.use()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb, and exit with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    terminal.prepare()
    is_program = signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # set by __main__
    if is_program:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    given = given or ["--help"]
    try:
        status = _run(given)
    except click.UsageError as error:
        status = _fail(_of_usage(error), given)
    except (click.Abort, KeyboardInterrupt):
        status = _fail(CliError("Stopped.", "STOPPED", status=errors.INTERRUPTED), given)
    except CliError as error:
        status = _fail(error, given)
    except BrokenPipeError:  # of the last lines
        terminal.end_quietly()
        status = errors.OK
    except OSError as error:
        status = _fail(CliError(_sentence(error), "SYSTEM_ERROR"), given)
    if is_program:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the interpreter ends
    sys.exit(status)


def _run(arguments: Sequence[str]) -> int:
    """Run a verb until its output is written. Return the exit status."""
    _check_encoding(arguments)
    try:
        status = codeinfo.main(arguments, prog_name="codeinfo", standalone_mode=False)
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        status = ended.code
    sys.stdout.flush()
    return int(status or 0)


def _sentence(error: OSError) -> str:
    """Return an error of the operating system that no verb expects, such as a full disk below the
    file that its output goes to."""
    file = f"{error.filename}: " if error.filename else ""
    return f"{file}{error.strerror or error}."


def _check_encoding(arguments: Sequence[str]) -> None:
    """Raise CliError for an argument that is not UTF-8: no name and no text of an index is so."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            message = f"The argument {ascii(argument)} is not UTF-8."
            raise CliError(message, "USAGE") from None


def _of_usage(error: click.UsageError) -> CliError:
    """Return a wrong usage as an error with the verb's help as the next step."""
    path = error.ctx.command_path if error.ctx else "codeinfo"
    step = f"{path} --help shows examples."
    return CliError(error.format_message(), "USAGE", next_step=step)


def _fail(error: CliError, arguments: Sequence[str]) -> int:
    """Write an error. Return the exit status."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        if "--json" in options:
            if body := error.as_json():
                terminal.json_out(body)
        else:
            terminal.note(f"codeinfo: {error.message}")
            if error.next_step:
                terminal.note(error.next_step)
    except BrokenPipeError:
        terminal.end_quietly()
    except OSError:  # stdout cannot be written, or that is the error itself
        terminal.end_quietly()
        terminal.note(f"codeinfo: {error.message}")
    return error.status
