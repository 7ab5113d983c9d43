# Every target sets up what it needs by itself: Python 3.11 or newer and make are enough.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Spark needs a Java, and Python workers the interpreter of the driver.
WITH_JAVA = home=$$($(BIN)/python -m lakewarden.java_home) && \
	export JAVA_HOME="$$home" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" &&

# A test often starts a Python, and Spark starts workers: what they have compiled is kept, also where
# the environment says not to, as images of containers do.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

# What to test, and any other arguments for pytest: make test TESTS="tests/engine -k timeline"
TESTS ?= tests

# Tests flush thousands of small files. Where memory has room for a file system, they do it there;
# those that are about a disk use a disk.
IN_MEMORY = df -Pk /dev/shm 2>/dev/null | awk '$$6 == "/dev/shm" && $$4 > 2000000 { print $$6 }'
WITH_SCRATCH = export PYTEST_DEBUG_TEMPROOT="$$($(IN_MEMORY))" &&

# What to test with older Sparks.
COMPAT_SPARKS ?= 3.5.9 4.0.5 4.1.4 4.2.1 4.3.0
COMPAT_TESTS ?= tests/sql_ext --ignore=tests/sql_ext/test_jar.py

# How many races to simulate: make simulate SEEDS=1000
SEEDS ?= 100000

# How many histories and races to play, and from which seed on: make histories HISTORIES=1000 FROM=20000
HISTORIES ?= 20000
RACES ?= 100000
FROM ?= 0

# How long pairs of calls are played on each kind of table: make pairs PAIR_SECONDS=60
PAIR_SECONDS ?= 3600

# How long writers are stopped and killed: make torture TORTURE_SECONDS=60
TORTURE_SECONDS ?= 600

# How many rounds of rivals: make rivals RIVAL_ROUNDS=50 FROM=7
RIVAL_ROUNDS ?= 500

# On how many rows indexes are built beside writers, and how often a builder is killed.
BUILD_ROWS ?= 2000000
BUILD_KILLS ?= 50

# How often a stream is killed.
STREAM_KILLS ?= 500

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test test-all compat jar simulate histories races pairs torture torture-indexes torture-streams rivals check format bench interop interop-full lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1|/' | \
		awk -F '|' '{ printf "%-20s %s\n", $$1, $$2 }'

venv: $(READY) ## Set up .venv with the locked development environment

$(READY): requirements/dev.lock pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(VENV) requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-compile --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## Run the main job on a local session and show what it does
	@$(WITH_JAVA) $(BIN)/python -m lakewarden.demo

test: $(READY) ## Run all tests but interop
	@$(WITH_SCRATCH) $(WITH_JAVA) $(BIN)/pytest -n auto --dist loadgroup $(TESTS)

test-all: $(READY) ## Run all of what `make test` draws a part of each day, which takes hours
	@LAKEWARDEN_ALL=1 $(MAKE) --no-print-directory test

compat: $(READY) ## Run the tests of SQL with each Spark that is supported, and dbt
	@for spark in $(COMPAT_SPARKS); do scripts/compat.sh $$spark $(COMPAT_TESTS) || exit 1; done
	@scripts/dbt.sh

jar: $(READY) ## Build the jars of sql_ext anew (needs javac of JDK 17)
	@scripts/compat.sh 3.5.9
	@$(BIN)/python scripts/build_jar.py

simulate: $(READY) histories races ## Kill, race and compare writers, and crowd a server, more often than `make test` does
	@$(WITH_SCRATCH) LAKEWARDEN_KILLS=200 LAKEWARDEN_SEEDS=$(SEEDS) $(BIN)/pytest -n auto \
		tests/crash tests/races tests/rfc tests/writing tests/incremental tests/simulation tests/model \
		tests/engine/metadata tests/engine/transaction tests/engine/read tests/engine/services
	@$(WITH_SCRATCH) $(WITH_JAVA) LAKEWARDEN_KILLS=200 LAKEWARDEN_LOAD_SECONDS=120 $(BIN)/pytest -n0 -rP \
		tests/sql_ext/server/test_load.py tests/sql_ext/test_bad_input.py

histories: $(READY) ## Play random histories of all calls; their figures add up in .histories.json
	@$(BIN)/python -m tests.histories --seeds $(FROM)-$$(( $(FROM) + $(HISTORIES) )) \
		--jobs $$(nproc) --into .histories.json

races: $(READY) ## Race real writes and services; the figures add up in .races.json
	@$(BIN)/python -m tests.side_by_side --seeds $(FROM)-$$(( $(FROM) + $(RACES) )) \
		--jobs $$(nproc) --into .races.json

pairs: $(READY) ## Make each public call in the middle of each other one, on four kinds of table
	@for kind in mor cow buckets "record index"; do \
		$(BIN)/python -m tests.pairs "$$kind" --seconds $(PAIR_SECONDS) --seed $(FROM) || exit 1; done

torture: $(READY) ## Stop, continue and kill four writers of one table for ten minutes, of each kind
	@$(BIN)/python -m tests.races.stopped_processes --seconds $(TORTURE_SECONDS) --seed $(FROM) --type cow
	@$(BIN)/python -m tests.races.stopped_processes --seconds $(TORTURE_SECONDS) --seed $(FROM) --type mor

rivals: $(READY) ## Race processes that want each other's file groups, with early conflict detection
	@$(BIN)/python -m tests.races.rival_processes --rounds $(RIVAL_ROUNDS) --seed $(FROM)

torture-indexes: $(READY) ## Build each kind of index beside four writers, and kill the builder fifty times
	@$(BIN)/python -m tests.races.builds_beside_writers --rows $(BUILD_ROWS) --kills $(BUILD_KILLS) \
		--seed $(FROM)

torture-streams: $(READY) ## Kill a process that writes a stream five hundred times
	@$(BIN)/python -m tests.races.killed_streams --kills $(STREAM_KILLS) --seed $(FROM)

check: $(READY) ## Check format, lint, types, layers and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -n0 tests/test_tidy.py tests/test_tidy_checkout.py

format: $(READY) ## Format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## Measure side by side with floors and peers
	@$(WITH_JAVA) $(BIN)/python -m bench

interop: $(READY) ## Let Java Hudi and the Rust reader judge our tables (needs Maven)
	@tests/interop/setup.sh .interop
	@$(WITH_SCRATCH) $(BIN)/pytest -n 2 --dist worksteal tests/interop

interop-full: $(READY) ## The same with tables of every shape, which takes about an hour
	@tests/interop/setup.sh .interop
	@$(WITH_SCRATCH) $(BIN)/pytest -n 2 --dist worksteal tests/interop --all-shapes

lock: ## Renew the locks of requirements from pyproject.toml
	@scripts/lock.sh

clean: ## Remove what the other targets made
	rm -rf $(VENV) .compat .interop build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
