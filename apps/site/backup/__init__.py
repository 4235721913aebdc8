"""A backup: one archive of the database, the vectors and the words, and its way back.

`copying` makes a consistent copy, `archive` writes and reads the file, `manifest` says what is in
it, `restoring` puts it into a folder.
"""
