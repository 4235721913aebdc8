"""`codeinfo mcp`: MCP over stdin and stdout, for clients that start their servers themselves.

Messages pass unchanged between the client and an HTTP endpoint of the server of the data folder. If
the server is not running, it is started; meanwhile the handshake is answered from a stored table
(`answers`), as is the list of tools, and other messages wait. The server learns in headers where
the client works (`workspace`).
"""
