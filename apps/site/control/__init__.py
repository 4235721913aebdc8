"""The control socket, by which commands send requests to the running server.

It is a Unix socket in the data folder with mode 0600, for the server's user and root only. A
request is one line of JSON, `{"verb": …, "options": {…}}`. The response is any number of lines
`{"progress": text}`, and one line `{"result": …}` or `{"error": {"code", "message"}}`.
"""
