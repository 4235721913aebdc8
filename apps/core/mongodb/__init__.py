"""What Django's own apps need on MongoDB: keys that are ObjectIds, and migrations that say so."""
