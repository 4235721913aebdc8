"""Rebuilds the weights of the built-in embedder from public packages: `python -m training`.

The product never imports this. How the weights are made, and what was tried, is told in
docs/embedder.md.
"""
