"""Which lines come first for a question: `python -m benchmarks.answers --help`."""
