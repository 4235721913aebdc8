"""Lines that stand in a relation to a definition or a repository: tests, implementations, ways of
calls, entry points, routes, settings, frames of a stack trace (docs/questions.md).

Each function takes a `SymbolQuery` or a `Scope`, and returns bounded `Relations`. It reads files
until the deadline of the answer that they are for, whose note tells what was not read."""
