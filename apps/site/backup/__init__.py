"""Backup and restore: one archive of the database, the vectors and the words.

`copying` makes a consistent copy, `archive` writes and reads the file, `manifest` lists its
content, `restoring` extracts it to a data folder.
"""
