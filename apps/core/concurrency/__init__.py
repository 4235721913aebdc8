"""Processes and tasks that work beside requests, and notices between them."""
