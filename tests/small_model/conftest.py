"""These need a model that `make test-model` installs; `make test` has none."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("xllamacpp") else ["test_*.py"]
