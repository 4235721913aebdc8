"""codeinfo: answers questions about source code with cited lines."""

__version__ = "0.1.0"
