"""The entry point of the bundle: `codeinfo mcp`, from the wheel beside it."""

from codeinfo_cli.main import main

main(["mcp"])
