"""Render answers: text as safe HTML, citations, steps. Pure: no writes, no sockets."""
