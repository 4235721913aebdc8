"""These need the servers that `python -m tests.stores` starts; `make test` has none of them."""

from apps.core.config import config

collect_ignore_glob = [] if config().redis_url else ["test_*.py"]
