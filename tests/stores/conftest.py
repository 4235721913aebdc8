"""These need the servers that `python -m tests.stores` starts; `make test` has none of them."""

from apps.core.conf import knobs

collect_ignore_glob = [] if knobs().redis_url else ["test_*.py"]
