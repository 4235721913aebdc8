"""JSON-RPC endpoints of the Model Context Protocol: `/mcp`, `/mcp/chat` and `/mcp/agents`.

An "agent" here is an agent defined on this server (`apps.agent_runs`), which the tools of
`/mcp/agents` list and run. The programs that connect to these endpoints are "clients".
"""
