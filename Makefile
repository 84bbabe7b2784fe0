# Everything runs inside .venv, which the first command creates.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo explore serve test test-slow lint clean

demo: .venv/installed
	$(BIN)/starshl demo

explore: .venv/installed-serve
	$(BIN)/starshl explore

serve: .venv/installed-serve
	$(BIN)/starshl serve --demo

test: .venv/installed-test lint
	$(BIN)/python -m pytest -n auto

test-slow: .venv/installed-test
	$(BIN)/python -m pytest -m slow

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "starshl needs Python 3.11 or newer; name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/installed-serve: .venv/installed
	$(BIN)/python -m pip install --quiet --editable '.[serve]'
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --group test --group adapters
	touch $@

clean:
	rm -rf .venv
