"""Django's database backend for PostgreSQL, for text that PostgreSQL refuses."""
