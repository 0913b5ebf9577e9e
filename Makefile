# The few verbs to work with Everview. `make` alone lists them.

VENV := .venv
STAMP := $(VENV)/.setup-done
PINS := requirements.txt requirements-dev.txt requirements-java.txt

# The Pythons that every pin has wheels for, the newest first. A name may exist and not run, so each is tried.
PYTHONS := python3.13 python3.12 python3.11 python3
USABLE := import sys, ensurepip, sqlite3, ssl, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.PHONY: help setup demo test test-all torture serve check format bench
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with everything pinned; quick when nothing changed

demo: setup ## see it work, on a fresh environment
	@$(VENV)/bin/everview demo $(ARGS)

test: setup ## run the tests; ARGS="-k name" selects some
	@$(VENV)/bin/pytest $(ARGS)

test-all: setup ## run the tests in their long forms
	@EVERVIEW_LONG=1 $(VENV)/bin/pytest $(ARGS)

torture: setup ## kills, bombs, fuzz, disks, clocks, silent clients and a soak; ARGS="--help" lists them
	@$(VENV)/bin/python -m tests.torture $(ARGS)

serve: setup ## serve SQL to psql and others; ARGS="--data DIR" and the like
	@$(VENV)/bin/everview serve $(ARGS)

check: setup ## lint, formatting and types
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy

format: setup ## format the code and fix what lint can
	@$(VENV)/bin/ruff check --fix --quiet
	@$(VENV)/bin/ruff format

bench: setup ## measure, each number beside its reference
	@$(VENV)/bin/python -m benchmarks $(ARGS)

$(STAMP): $(PINS) pyproject.toml
	@if ! $(VENV)/bin/python -c '$(USABLE)' 2>/dev/null; then \
	  for candidate in $(PYTHONS); do \
	    if $$candidate -c '$(USABLE)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	  done; \
	  if [ -z "$${python:-}" ]; then \
	    echo 'setup: no usable Python found: install Python 3.11, 3.12 or 3.13 with its venv module' >&2; exit 1; \
	  fi; \
	  echo "setup: making $(VENV) with $$($$python --version)"; \
	  $$python -m venv --clear $(VENV); \
	fi
	@echo 'setup: installing the pinned packages into $(VENV); a minute or two the first time'
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
