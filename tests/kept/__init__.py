"""Data folders of earlier formats, which each later version opens.

`python -m tests.kept` adds one of the present format. None is ever replaced.
"""
