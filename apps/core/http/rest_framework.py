"""REST framework as an installed app, without the packages that it imports if they are there."""

from rest_framework.apps import RestFrameworkConfig

from apps.core.system.unused import without

# Fields of PostgreSQL, a client for tests, and YAML: a fifth of a start.
with without("django.contrib.postgres", "requests", "yaml"):
    import rest_framework.compat  # noqa: F401 - what imports it later gets this one


class JsonRestFramework(RestFrameworkConfig):
    pass
