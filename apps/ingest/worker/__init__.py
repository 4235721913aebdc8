"""The worker: the process that writes the index. A server starts it, or `codeinfo worker`."""
