"""The Codex provider. Codex is OpenAI's agent; it runs as a separate process and stores its
conversations itself (contract.md §8).

    provider      the Provider: availability, models, one answer as ModelEvents
    options       ModelRequest → parameters of a thread and a turn              (pure)
    translation   notifications of Codex → ModelEvents                          (pure)
    failures      errors of Codex → Unavailable                                 (pure)
    flags         the options of a user, with labels and defaults               (pure)
    turn          one turn, in its own thread
    wire          the items that a turn yields
    session       the entry points that need the SDK, imported on first use
    process       start the program and read bounded lines
    server        the process for each Codex home: start, call, restart, close
    home          the folder of settings and credentials
    account       login state; login with a device code
    probe         check the MCP endpoint through which Codex searches

The SDK (`openai_codex`) is an optional dependency, imported in a thread on first use. It blocks,
and a turn may be silent for minutes. So every turn and every request runs in a new thread: no pool
can be exhausted, and Stop never waits behind silent turns.
"""
