"""Verifies the index: compares rows, parts and folders with each other."""
