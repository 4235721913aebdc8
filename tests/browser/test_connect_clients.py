"""The Connect page adds codeinfo to a client of this machine, after it has shown the change."""
