"""These tests need a model that `make test-model` installs; `make test` does not run them."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("xllamacpp") else ["test_*.py"]
