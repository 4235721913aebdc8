"""`codeinfo install`: writes codeinfo into the configuration of MCP clients, and removes it.

The Connect page uses this package, too. It imports nothing of the product.
"""
