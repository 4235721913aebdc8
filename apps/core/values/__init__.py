"""Values as text: addresses, schemas, times."""
