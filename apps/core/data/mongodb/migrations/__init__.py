"""Migrations of Django's own apps for MongoDB: `manage.py makemigrations` made them."""
