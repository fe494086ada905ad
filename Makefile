# `make demo` and `make test` need Python 3.10 to 3.13 and nothing else: they install what they use
# into .venv. `make help` lists the rest.

PYTHON ?= $(shell for p in python3.11 python3.10 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
SITE_VENV ?= .venv-site
BIN := $(VENV)/bin
PYVER = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CONSTRAINTS = $(wildcard requirements/constraints-$(PYVER).txt)
EXTRAS = all,dev
JOBS ?= 2
# Slow tests often wait for programs, so they get a worker more than there are processors.
SLOW_JOBS ?= 3
FUZZ_SECONDS ?= 600
# Tests that fork thousands of processes run first and apart: a fork of a process that has loaded
# TensorFlow takes five times as long, because it copies a larger page table. The test that kills
# parts of a Dask cluster runs with them, because on busy processors Dask meets a race of its own.
FORKS = $(addprefix tests/,acceptance/test_faults.py acceptance/test_fault_steps.py \
	acceptance/test_kill_steps.py acceptance/test_kill_dask.py acceptance/test_beside_gc.py \
	acceptance/test_released_bytes.py acceptance/test_many_releases.py \
	builtin/training/test_killed_runs.py)
# The longest tests, which begin first so that no processor waits at the end.
LONG = tests/package tests/examples
# The plugin guide without pip: `test-versions` has it, and a slow test types the guide word for word.
GUIDE = tests/plugins/test_guide.py::test_the_guide_works_as_it_stands
# The tests in which versions show: pickle, processes, threads, NumPy, images, TensorFlow, TFDV, DVC.
# Those of plugins run apart: they import Arrow, and on Python 3.13 a fork of a process that has it and
# TensorFlow can crash when it clears what is registered with atexit.
VERSIONS = $(addprefix tests/,core/check/scan core/example core/images core/storage core/workers \
	builtin/dvc builtin/pages builtin/statistics builtin/training builtin/validators \
	cli/test_hostile_validators.py)

export TF_CPP_MIN_LOG_LEVEL ?= 3
# Container images set it. Without compiled modules each program that a test starts compiles what it
# imports: TensorFlow takes three seconds more, and the tests themselves take ten to be collected.
unexport PYTHONDONTWRITEBYTECODE

# A seventh of the quick tests call fsync 25,000 times: 99 s on a busy disk, 2 s in memory. So their
# files are in memory where it has room and programs may be run there; they are removed at the end.
MEMORY := $(shell try=$$(mktemp /dev/shm/tfrecreg-XXXXXX 2>/dev/null) || exit; \
	echo exit 0 > $$try && chmod +x $$try && $$try 2>/dev/null && \
	df -Pk /dev/shm | awk 'NR == 2 && $$4 > 4000000 { print "/dev/shm" }'; rm -f $$try)
BASE_TEMP = $(if $(MEMORY),--basetemp "$$folder")
IN_MEMORY = $(if $(MEMORY),folder="$$(mktemp -d $(MEMORY)/tfrecreg-XXXXXX)" && trap 'rm -rf "$$folder"' EXIT INT TERM &&)

.PHONY: help demo pipeline test test-slow test-forks test-rest test-versions test-lowest fuzz accept lint types layers format docs site screenshots benchmark clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# The stamp is newer than what decides the environment, so a second run installs nothing.
$(VENV)/.installed: pyproject.toml hatch_build.py tfrecreg/core/records/walk.c $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(CONSTRAINTS:%=--constraint %) --editable '.[$(EXTRAS)]'
	touch $@

demo: $(VENV)/.installed ## Run the whole workflow on generated sample data
	$(BIN)/tfrecreg demo

pipeline: $(VENV)/.installed ## Run the whole pipeline of examples/own-registry
	cd examples/own-registry && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/dvc repro --force

test: $(VENV)/.installed ## Run the quick tests, the linters and the type checker
	@$(MAKE) --no-print-directory --jobs $(JOBS) lint types layers
	$(IN_MEMORY) $(BIN)/python -m pytest -q -n $(JOBS) -m "not (slow or medium)" $(BASE_TEMP)

test-slow: test-forks test-rest ## Run the tests that start programs, and the sweeps that take minutes

test-forks: $(VENV)/.installed
	$(IN_MEMORY) $(BIN)/python -m pytest -q -n $(JOBS) -m "slow or medium" $(FORKS) $(BASE_TEMP)

test-rest: $(VENV)/.installed
	$(IN_MEMORY) $(BIN)/python -m pytest -q -n $(SLOW_JOBS) -m "slow or medium" $(FORKS:%=--ignore=%) --deselect $(GUIDE) $(LONG) tests $(BASE_TEMP)

test-versions: $(VENV)/.installed ## Run the tests in which versions show, without sweeps
	$(IN_MEMORY) $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" tests/plugins $(BASE_TEMP)
	$(IN_MEMORY) $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" $(VERSIONS) $(BASE_TEMP)

test-lowest: ## Run them with the lower bounds of pyproject.toml, with PYTHON=python3.10
	$(MAKE) test-versions VENV=.venv-lowest CONSTRAINTS=requirements/lowest-3.10.txt \
		EXTRAS=tf,dvc,beam,images,coco,media,arrayrecord,parquet,remote,dev

fuzz: $(VENV)/.installed ## Fuzz the parsers for FUZZ_SECONDS (600)
	PYTHONPATH=.:tests/support:plugins nice -n 19 $(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

accept: format docs ## Format, and write anew what is drawn and pinned: codes, pictures, the words of stories
	PYTHONPATH=.:tests/support:plugins $(BIN)/python tests/core/values/codes/test_codes.py
	PYTHONPATH=.:tests/support:plugins $(BIN)/python tests/golden/stories.py

lint: $(VENV)/.installed ## Run the linters and check the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed ## Check the types, strictly
	$(BIN)/mypy

layers: $(VENV)/.installed ## Check that imports point down
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed ## Draw the pictures of README and docs
	$(BIN)/python docs/generate.py

# It has an environment of its own, so that what it needs does not meet TFDV's requirements.
$(SITE_VENV)/.installed: requirements/site.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: the site needs Python 3.11\nhint: make site PYTHON=python3.11")'
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --requirement $< --editable .
	touch $@

site: $(SITE_VENV)/.installed ## Build the documentation site, strictly, into site/html
	$(SITE_VENV)/bin/python docs/site_source.py site/pages
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --quiet --strict --clean

screenshots: $(VENV)/.installed ## Take screenshots of pages about generated data, with Chromium
	$(BIN)/python docs/screenshots.py
	PYTHONPATH=tests $(BIN)/python docs/view_pictures.py

benchmark: $(VENV)/.installed ## Run the benchmarks, side by side with the baselines
	$(BIN)/python -m benchmarks

clean: ## Remove the files made by the targets above
	rm -rf $(VENV) $(SITE_VENV) .venv-* build dist screenshots site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
