"""Split source text along its syntax tree, in a separate process.

`python -m apps.code.syntax` is the parse process that `apps.index.parsing` starts. A grammar may
loop for ever or crash, so the process may end at any time. It starts often, so nothing here imports
Django, numpy or other rooms.
"""
