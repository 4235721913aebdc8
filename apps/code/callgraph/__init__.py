"""Call and import edges, from syntax trees (docs/symbols.md).

`extract` reads the facts of one file in the parse process: definitions, bindings, imports, calls.
`resolve` follows names across the files of a repository. `languages` has the rules of each
language. Nothing but `extract` imports tree-sitter.
"""
