# Every target works from a bare clone: it creates the environment first.

PYTHON ?= python3
ARGS ?=
# The number of test processes: more than cores, because tests that wait for other processes need none. 0 runs the tests
# in pytest itself, as a debugger needs it.
PROCESSES ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# The folder for databases of tests: in memory if possible, since every commit is synced.
SCRATCH := $(firstword $(wildcard /dev/shm) $(TMPDIR) /tmp)

# Hundreds of processes that tests start would otherwise compile the package again, half a second each.
export PYTHONDONTWRITEBYTECODE =

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
CHECKED := $(wildcard src tests bench compat demo examples soak)
PROSE := $(wildcard *.md docs)

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test golden lint format docs bench profile compat soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the pinned versions

# Both variables are needed: older pips read the first for the build backend
# too, newer ones only the second.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Seachange needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## run the demonstration (ARGS=--quick for a short one)
	$(BIN)/python -m demo $(ARGS)

serve: $(STAMP) ## serve a scratch database to psql and other clients (ARGS="--listen 127.0.0.1:6000")
	$(BIN)/seachange serve --data .scratch $(ARGS)

test: $(STAMP) ## run the tests (ARGS="-k name", ARGS=--exhaustive)
	@folder=$$(mktemp -d $(SCRATCH)/seachange-tests.XXXXXX) && trap 'rm -rf "$$folder"' EXIT && set -x && \
		$(BIN)/python -m pytest -n $(PROCESSES) --maxprocesses 8 --dist worksteal --basetemp "$$folder/run" $(ARGS)

golden: $(STAMP) ## rewrite the golden files and generated pages; git diff shows what changed
	$(BIN)/python -m pytest -q -m golden --rewrite $(ARGS)

lint: $(STAMP) ## run the static checks: ruff, mypy, import-linter
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix-only --quiet $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

docs: $(STAMP) ## check the documentation: spelling, links, examples, prose and generated pages
	$(BIN)/codespell $(PROSE)
	$(BIN)/python -m pytest -q tests/docs tests/benchmark_page/test_page.py tests/planner/explain/test_docs.py tests/ddl_operations/test_page.py $(ARGS)

bench: $(STAMP) ## run the benchmarks and write their page (ARGS="--only headline --scale small")
	$(BIN)/python -m bench $(ARGS)

profile: $(STAMP) ## draw a flame graph of a server under load, and time a transaction (ARGS="--load read.eight")
	$(BIN)/python -m bench.flame $(ARGS)

compat: $(STAMP) ## try PostgreSQL's clients against a server (ARGS="--only psql,JDBC")
	PYTHONPATH=. $(BIN)/python -m compat $(ARGS)

soak: $(STAMP) ## run processes under load and faults, checked independently (ARGS="--minutes 20 --seed 7")
	$(BIN)/python -m soak $(ARGS)

clean: ## remove .venv and caches
	rm -rf $(VENV) .compat .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info build
