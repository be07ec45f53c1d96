# Every verb installs what it needs into .venv first; nothing is installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

run: $(READY)  ## serve on http(s)://localhost:8081 with a small sample to look at
	$(BIN)/pleiad serve --data data --sample

test: $(READY)  ## the whole test suite
	$(BIN)/python -m pytest

lint: $(READY)  ## style, types, and the direction of imports between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build
