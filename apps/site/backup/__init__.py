"""Backup and restore: one archive of the database and the index.

`copying` makes a consistent copy, `archive` writes and reads the file, `manifest` lists its
content, `restoring` extracts it to a data folder.
"""
