"""Django's apps on MongoDB: ObjectId keys, and migrations with these."""
