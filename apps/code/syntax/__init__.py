"""Cutting source text along its syntax tree, in a process of its own.

Run as `python -m apps.code.syntax` it is the parse process that `apps.index.parsing` starts and
may lose: a grammar can loop for ever, or crash, on input nobody foresaw. So nothing here imports
Django, numpy or the rest of the product.
"""
