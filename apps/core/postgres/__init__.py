"""Django's database backend for PostgreSQL, taking text that PostgreSQL itself refuses."""
