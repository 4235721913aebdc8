"""How well a search finds the files that answer: `python -m benchmarks.retrieval --help`."""
