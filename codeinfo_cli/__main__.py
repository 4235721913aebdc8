"""`python -m codeinfo_cli` is the `codeinfo` command."""

from codeinfo_cli.main import main

if __name__ == "__main__":
    main()
