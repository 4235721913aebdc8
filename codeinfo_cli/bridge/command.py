"""The verb `codeinfo mcp`."""

import click

from codeinfo_cli import project

ENDPOINTS = ("tools", "chat", "agents")


@click.command("mcp")
@click.option(
    "--endpoint",
    type=click.Choice(ENDPOINTS),
    default="tools",
    show_default=True,
    help="tools: search and read code; chat: ask questions; agents: run agents.",
)
def mcp_command(endpoint: str) -> None:
    """Serve MCP on standard input and output, for agents that start it themselves.

    It uses the server of your data folder, and starts one if none is running. `codeinfo install`
    writes this command into the configuration of a client:

    \b
        codeinfo install claude-code
        codeinfo mcp --endpoint chat
    """
    # Imported here, as other verbs do not need them.
    import asyncio  # noqa: PLC0415

    from codeinfo_cli.bridge.relay import serve  # noqa: PLC0415

    asyncio.run(serve(project.data_dir(), endpoint))
