"""The `codeinfo` command.

Verbs are clients of the server of a data folder, over HTTP. This package does not import Django or
the product, except for `serve` and the commands that Django's command line has already, so that a
verb starts in a fraction of a second.
"""
