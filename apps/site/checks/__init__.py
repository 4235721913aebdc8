"""Checks of an installation, with time limits, for `/health`, the home page and `manage.py
doctor`."""
