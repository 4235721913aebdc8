"""What can be wrong with an installation, asked with time limits: one set of checks behind
`/health`, the home page and `manage.py doctor`."""
