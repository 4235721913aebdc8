"""Requests, responses and connections."""
