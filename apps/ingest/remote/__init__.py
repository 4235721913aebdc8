"""Repositories by URL: what their addresses are, and how git fetches them (docs/security.md)."""
