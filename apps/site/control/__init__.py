"""What commands ask the running server for, as it has the stores: `POST /control/<verb>`.

Only the codeinfo commands of the user who runs codeinfo may ask: the request needs the token of
`server.json`. The body is the verb's options. The response is a stream of events `{"progress":
text}`, and one `{"result": …}` or `{"error": {"code", "message"}}`.
"""
