"""Django's database backend for SQLite, which notes that the file is damaged."""
