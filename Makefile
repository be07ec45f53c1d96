# Every verb installs what it needs into .venv first; nothing is installed by hand. To serve takes less than to test: all that
# the explorer shows.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVES := $(VENV)/.serves
READY := $(VENV)/.ready
COMPILED := build/compiled
INSTALL := pip install --disable-pip-version-check --editable
SERVING := .[postgres,advise]

# Tests start many servers, each of which would compile all modules anew where the environment tells Python to keep none.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

.DEFAULT_GOAL := help
.PHONY: help run test test-postgres lint bench bench-peers bench-growth oracle attack conformance clients javascript dotnet go java rust start-page browser endurance crash simulate truth isolation docs requirements lock clean

# The locked versions are what everybody has. Where one of them cannot be had, for another Python or from an older index,
# the newest allowed ones do as well.
define install
	@echo "Installing $(2) into $(VENV); this takes up to a minute the first time."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/$(INSTALL) '$(1)' --constraint constraints.txt || \
	{ echo "Not all versions of constraints.txt can be had here: installing the newest that pyproject.toml allows."; \
	$(BIN)/$(INSTALL) '$(1)'; }
endef

$(SERVES): pyproject.toml constraints.txt
	$(call install,$(SERVING),Pleiad)
	touch $@

$(READY): pyproject.toml constraints.txt
	$(call install,.[dev],Pleiad and what its tests need)
	touch $(SERVES) $@

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { line = sprintf("%-14s", $$1); count = split($$2, words, " "); \
	for (i = 1; i <= count; i++) { if (length(line " " words[i]) > 79) { print line; line = sprintf("%-14s", "") } \
	line = line " " words[i] } print line }' $(firstword $(MAKEFILE_LIST))

run: $(SERVES)  ## serve on http(s)://localhost:8081 with a small sample to look at
	$(BIN)/pleiad serve --data data --sample

# In a fresh checkout each of the processes of the tests would compile all of them: two do it for all first.
COLLECT := $(BIN)/python -m pytest --collect-only -qq

$(COMPILED): $(READY)
	@echo "Compiling the tests."
	@mkdir -p build
	@$(COLLECT) tests/rooms/[a-p]* >/dev/null & \
	$(COLLECT) tests/rooms/[q-z]* tests/proofs tests/clients tests/test_*.py conformance >/dev/null; wait
	@touch $@

# Tests wait for disks, servers and clocks half of their time: three for each of two processors keep these busy.
PROCESSES ?= 6
SUITE := $(BIN)/python -m pytest -m "not long" -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

test: $(COMPILED)  ## the test suite without the long proofs
	$(SUITE)

test-postgres: $(COMPILED)  ## the same with PostgreSQL as the store wherever a test opens one
	$(SUITE) --store postgres

lint: $(READY)  ## style, types, and the direction of imports between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## ratios against the same HTTP loop answering a constant; writes build/bench.json
	$(BIN)/python -m bench

bench-peers: $(READY)  ## ratios to other servers of the protocol, one core each, where Go and npm have them; writes build/peers.md
	$(BIN)/python -m bench.peers

bench-growth: $(READY)  ## processor time of an operation as items, partitions, containers and connections grow; writes build/growth.md and .svg
	$(BIN)/python -m bench.growth

attack: $(READY)  ## every class of attack on real servers, both stores; 1,000,000 fuzzed requests and queries, and frames; takes hours
	$(BIN)/python -m attack

oracle: $(READY)  ## the service's own query planner and Pleiad on recorded and fresh random texts, differences by cause; needs data that is not in a clone
	$(BIN)/python -W ignore -m differential --expressions 200000 --queries 100000 --wild 50000

conformance: $(READY)  ## the official Python, Go and Rust clients' own tests against Pleiad; writes docs/compatibility.md
	$(BIN)/python -m conformance.python_suite --select all --write
	$(BIN)/python -m conformance.python_suite --store postgres --select all --write
	@if command -v go >/dev/null; then $(BIN)/python -m conformance.go.suite --write; \
	else echo "Go is not installed here: the Go client's own tests are left out."; fi
	@if command -v cargo >/dev/null; then $(BIN)/python -m conformance.rust.suite --write; \
	else echo "Cargo is not installed here: the Rust client's own tests are left out."; fi

# The programs over the official clients. A first build downloads what it needs: Go and Java a minute, Rust four.
CLIENTS ?= dotnet javascript go java rust

clients: $(READY)  ## the program over each official client whose tools are installed, .NET and Java in both connection modes; CLIENTS="dotnet javascript go" chooses, as a landing does
	$(BIN)/python -m conformance.clients $(CLIENTS)

javascript: $(READY)  ## every operation of the official JavaScript client; needs Node and npm
	$(BIN)/python -m conformance.javascript.run

dotnet: $(READY)  ## every operation of the official .NET client, in gateway and in direct mode; needs its SDK, or the kit beside the checkout
	$(BIN)/python -m conformance.dotnet.run

go: $(READY)  ## every operation of the official Go client; needs Go
	$(BIN)/python -m conformance.go.run

java: $(READY)  ## every operation of the official Java client, in gateway and in direct mode; needs a JDK of version 17 or later and Maven
	$(BIN)/python -m conformance.java.run

rust: $(READY)  ## every operation of the official Rust client; needs Cargo, and minutes for the first build
	$(BIN)/python -m conformance.rust.run

start-page: $(READY)  ## the programs of docs/start.md, each with its client, over plain HTTP and over HTTPS
	$(BIN)/python -m conformance.start_page

browser: $(READY)  ## the explorer in a real browser, both stores; pictures in build/explorer; needs Chromium, which Debian has
	$(BIN)/python -m pytest tests/browser --store $(or $(STORE),both) -n 3 --dist loadfile

endurance: $(READY)  ## the explorer open for an hour on a server at work, PAGE_SECONDS=600 for less: no leak, less than 2 % of the server
	PLEIAD_PAGE_SECONDS=$(or $(PAGE_SECONDS),3600) $(BIN)/python -m pytest tests/browser/test_endurance.py -s

crash: $(READY)  ## kill -9 the real server, and PostgreSQL beneath two, a hundred times under load and in splits
	PLEIAD_CRASH_KILLS=100 $(BIN)/python -m pytest tests/proofs/crash tests/proofs/splits/test_kills.py tests/proofs/splits/test_direct_kills.py --store both

simulate: $(READY)  ## 1,000 seeds of splits, merges, rehomes and crashes under load, 200 on PostgreSQL; PLEIAD_SEED=n repeats one
	$(BIN)/python -m pytest -m long tests/proofs/simulation

truth: $(READY)  ## 100,000 random queries, 10,000 on PostgreSQL: oracle, compiled query and engine must agree; other rooms at length; takes hours
	$(BIN)/python -m pytest -m long tests/rooms

isolation: $(READY)  ## a minute of concurrent clients in one logical partition, and the check of what they were told
	$(BIN)/python -m pytest -m long tests/proofs/isolation --store both

docs: $(READY)  ## the pages of docs/ as a site with a search, in build/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html -c docs/site docs build/docs
	@echo "Open build/docs/index.html."

requirements: $(READY)  ## which of R1-R170 are shown by a passing test, documented, or open
	$(BIN)/python tools/requirements.py

lock:  ## renew constraints.txt: the newest versions that pyproject.toml allows, as a new environment gets them
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/$(INSTALL) '.[dev]'
	{ echo "# The versions that development and tests run with, kept by 'make lock'; see CONTRIBUTING.md."; \
	build/lock/bin/pip freeze --all --disable-pip-version-check --exclude-editable --exclude pip; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/lock

clean:  ## remove what the verbs made: the environment and build/
	rm -rf $(VENV) build
