"""Embedders: the built-in model, and OpenAI-compatible servers.

`catalogue` lists models and returns their embedders. Import from the modules: `types`, `words` and
`texts` need neither Django nor an HTTP client.
"""
