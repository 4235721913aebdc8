"""Backup and restore: one archive of the database, the index and the vectors.

`copying` makes a consistent copy, `archive` writes and reads the file, `manifest` lists its
content, `restoring` extracts it to a data folder.
"""
