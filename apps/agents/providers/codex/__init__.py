"""Codex: OpenAI's agent, which runs as a process of its own and keeps its conversations itself.

    provider      what the rest sees: availability, models, one answer as ModelEvents
    options       a request → what a thread and a turn of Codex are told        (pure)
    translation   notifications of Codex → ModelEvents                          (pure)
    failures      its errors → ours                                             (pure)
    flags         what a user may choose, with labels and defaults              (pure)
    turn          one turn, in a thread of its own; `wire` is what it tells
    session       what the provider needs of the SDK, imported on first use
    background    blocking work, each in a thread of its own
    process       how its program is started, and read in bounded lines
    server        the process for each Codex home: started, asked, started again, ended
    home          the folder of settings and credentials
    account       who is logged in; logging in with a code
    probe         whether our own MCP endpoint, which Codex searches through, answers

The SDK is an optional extra, imported on first use, in a thread. It blocks, and a turn may be
silent for minutes, so every turn and every request to it has a thread of its own: no pool can run
dry, and Stop is never in a queue behind silent turns.
"""
