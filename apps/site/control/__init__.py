"""The control socket: commands of this machine's user ask the running server through a file.

A Unix socket in the data folder, mode 0600. Only the server's own user and root are answered. A
request is one line of JSON, `{"verb": …, "options": {…}}`; the answer is lines of
`{"progress": text}` and, at last, `{"result": …}` or `{"error": {"code", "message"}}`.
"""
