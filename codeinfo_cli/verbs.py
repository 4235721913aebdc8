"""The table of verbs. Help, docs/cli.md and tests are made from it.

A verb's module is imported when the verb is used: `codeinfo --help` imports none.
"""

from dataclasses import dataclass

# In the order of the help
GROUPS = ("Ask", "Read", "Repositories", "Agents", "Server")


@dataclass(frozen=True)
class Verb:
    """One verb.

    name: what the user types
    group: one of GROUPS
    summary: a sentence
    command: where its click command is, `module:attribute`
    examples: (command line, what it does)
    """

    name: str
    group: str
    summary: str
    command: str
    examples: tuple[tuple[str, str], ...]


VERBS = (
    Verb(
        "search",
        "Ask",
        "Find passages by a question in words.",
        "search_verbs:search",
        (
            ("codeinfo search where are retries done", "In the repository of this folder."),
            ("codeinfo search -a -n 3 backoff delay", "The best three of all repositories."),
            ("codeinfo search -g '*.py' -l delay before an attempt", "Only the places."),
        ),
    ),
    Verb(
        "grep",
        "Ask",
        "Find exact text, as grep does: path:line:text.",
        "grep_verb:grep",
        (
            ("codeinfo grep backoff_delay", "Definitions first, then all uses."),
            ("codeinfo grep -i -C 2 'class \\w+policy' src", "Two lines around it, below src."),
            ("codeinfo grep -F -c 'self.limit' -g '*.py'", "Plain text, counted by file."),
        ),
    ),
    Verb(
        "ask",
        "Ask",
        "Answer a question in words, with citations.",
        "ask_verb:ask",
        (
            ("codeinfo ask how long does a retry wait", "With the first model that is there."),
            ("codeinfo ask -p builtin which class limits retries", "Without a language model."),
        ),
    ),
    Verb(
        "context",
        "Ask",
        "Gather all that answers a question, for a model.",
        "search_verbs:context",
        (("codeinfo context -n 2000 how are retries limited", "In at most 2000 tokens."),),
    ),
    Verb(
        "overview",
        "Read",
        "Show what a repository is, and where to start.",
        "overview_verb:overview",
        (
            ("codeinfo overview", "The repository of this folder."),
            ("codeinfo overview --json app", "Another one, for a program."),
        ),
    ),
    Verb(
        "history",
        "Read",
        "Show who changed what, when and why.",
        "history_verb:history",
        (
            ("codeinfo history src", "The commits of a folder."),
            ("codeinfo history -b src/retry.py:6-8", "The commit of each line."),
            ("codeinfo history -d --to HEAD", "What the last commit changed."),
        ),
    ),
    Verb(
        "impact",
        "Read",
        "Show callers and tests of what has changed.",
        "impact_verb:impact",
        (
            ("codeinfo impact", "What is not committed yet."),
            ("codeinfo impact --base main", "All since a branch, committed or not."),
            ("git diff HEAD~1 | codeinfo impact --patch -", "A patch."),
        ),
    ),
    Verb(
        "check",
        "Read",
        "Check which citations of a text still hold.",
        "check_verb:check",
        (
            ("codeinfo check notes.md", "A file."),
            ("codeinfo ask -p builtin which class limits retries | codeinfo check", "An answer."),
        ),
    ),
    Verb(
        "read",
        "Read",
        "Show lines of an ingested file.",
        "file_verbs:read",
        (
            ("codeinfo read src/retry.py:6-8", "As search and grep write it."),
            ("codeinfo read -p README.md", "All of it, without numbers."),
        ),
    ),
    Verb(
        "ls",
        "Read",
        "List ingested files.",
        "file_verbs:ls",
        (
            ("codeinfo ls", "This folder."),
            ("codeinfo ls -l -g '*.py'", "All Python files, with sizes."),
            ("codeinfo ls --skipped", "What was left out, and why."),
        ),
    ),
    Verb(
        "open",
        "Read",
        "Open a file in the browser, at its lines.",
        "file_verbs:open_",
        (("codeinfo open --print src/retry.py:6", "Write the address."),),
    ),
    Verb(
        "ingest",
        "Repositories",
        "Read a folder into the index, or what has changed in it.",
        "ingest_verb:ingest",
        (
            ("codeinfo ingest", "This folder."),
            ("codeinfo ingest ~/src/app --name app", "Another one, by a name of yours."),
            ("codeinfo ingest --dry-run .", "Count only."),
        ),
    ),
    Verb(
        "repos",
        "Repositories",
        "List the repositories.",
        "repository_verbs:repos",
        (("codeinfo repos", "With files, passages and folder."),),
    ),
    Verb(
        "remove",
        "Repositories",
        "Remove a repository from the index.",
        "repository_verbs:remove",
        (("codeinfo remove app --yes", "Without a question."),),
    ),
    Verb(
        "mcp",
        "Agents",
        "Serve MCP to a client that starts it.",
        "bridge.command:mcp_command",
        (
            ("codeinfo mcp", "What `codeinfo install` writes into a client's configuration."),
            ("codeinfo mcp --endpoint chat", "The endpoint that answers questions."),
        ),
    ),
    Verb(
        "install",
        "Agents",
        "Add codeinfo to an MCP client.",
        "clients.commands:install_command",
        (
            ("codeinfo install claude-code", "Shows the change, and asks."),
            ("codeinfo install codex --print", "Shows the change only."),
        ),
    ),
    Verb(
        "uninstall",
        "Agents",
        "Remove codeinfo from a client.",
        "clients.commands:uninstall_command",
        (("codeinfo uninstall codex", "Restores the files, if nobody has edited them since."),),
    ),
    Verb(
        "status",
        "Server",
        "Show the server, runs, repositories and providers.",
        "repository_verbs:status",
        (
            ("codeinfo status", "All of it."),
            ("codeinfo status .", "The repository of this folder."),
        ),
    ),
    Verb(
        "serve",
        "Server",
        "Serve in this terminal.",
        "server_verbs:serve",
        (("codeinfo serve", "Until Ctrl-C."),),
    ),
    Verb(
        "worker",
        "Server",
        "Ingest what is queued, without a server.",
        "server_verbs:worker",
        (("codeinfo worker", "Until Ctrl-C."),),
    ),
    Verb(
        "stop",
        "Server",
        "Stop the server.",
        "server_verbs:stop",
        (("codeinfo stop", "Another verb starts the next one."),),
    ),
    Verb(
        "doctor",
        "Server",
        "Check the installation.",
        "server_verbs:doctor",
        (("codeinfo doctor", "What is broken, and how to mend it."),),
    ),
    Verb(
        "backup",
        "Server",
        "Write database and index to one file.",
        "server_verbs:backup",
        (("codeinfo backup /backups/codeinfo.tar.gz", "While the server runs."),),
    ),
    Verb(
        "restore",
        "Server",
        "Restore a backup to a new data folder.",
        "server_verbs:restore",
        (("codeinfo restore /backups/codeinfo.tar.gz --data-dir /srv/codeinfo", "And verify it."),),
    ),
    Verb(
        "manage",
        "Server",
        "Run a command of Django's command line.",
        "server_verbs:manage",
        (("codeinfo manage verify_index", "Of those that have no verb."),),
    ),
    Verb(
        "completion",
        "Server",
        "Write the completion script of a shell.",
        "server_verbs:completion",
        (("codeinfo completion bash", 'In ~/.bashrc: eval "$(codeinfo completion bash)"'),),
    ),
)

BY_NAME = {verb.name: verb for verb in VERBS}
