# Everything starts here. `make help` lists the targets.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
unexport PYTHONDONTWRITEBYTECODE  # the tests' workers share compiled files


.PHONY: help up down purge doctor test test-long screenshots corpus vendors check format bench lock clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 20

$(READY): requirements/dev.lock pyproject.toml scripts/setup
	@sh scripts/setup $(VENV)
	@touch $(READY)

# `down`, `purge` and `doctor` must work without a network: they use the existing environment.
$(BIN)/tera:
	@$(MAKE) --no-print-directory $(READY)

up: $(READY)  ## set up and start the cloud on this machine (as root: with real containers)
	@sh scripts/prepare-engine
	@$(BIN)/tera up

down: $(BIN)/tera  ## stop the server and all instances; GUESTS=keep leaves instances running
	@$(BIN)/tera down $(if $(filter keep,$(GUESTS)),--keep-guests)

purge: $(BIN)/tera  ## remove everything that Teraflock created on this machine; YES=1 skips the question
	@$(BIN)/tera purge $(if $(YES),--yes)

doctor: $(BIN)/tera  ## check the installation and show what to repair
	@$(BIN)/tera doctor

test: $(READY)  ## set up and run the tests on all cores, without the long ones
	@sh scripts/postgres
	@sh scripts/slurm
	@sh scripts/browser
	@$(BIN)/python -m compileall -q -j 0 src  # once, instead of by each worker
	@sh scripts/test $(BIN)/python -m "not long"

test-long: $(READY)  ## run the long tests: simulations, fault injection at every step, large property tests
	@sh scripts/postgres
	@sh scripts/slurm
	@sh scripts/browser
	@$(BIN)/python -m compileall -q -j 0 src  # once, instead of by each worker
	@sh scripts/test $(BIN)/python -m "long"

screenshots: $(READY)  ## write pictures of every page of the console to build/screenshots
	@sh scripts/browser
	$(BIN)/python -m tests.console.screenshots build/screenshots

corpus: $(READY)  ## trace every script in tests/corpus, with PyTorch in a separate environment
	@sh scripts/setup-trace $(VENV) .venv-trace
	TERA_CORPUS=all .venv-trace/bin/python -m pytest tests/corpus tests/unit/workload

vendors: $(READY)  ## compare the fakes of clouds with the providers' own SDKs, in a separate environment
	@sh scripts/setup-vendors $(VENV) .venv-vendors
	.venv-vendors/bin/python -m pytest tests/vendors -n 0 -W ignore

check: $(READY)  ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## run the benchmarks and print the results
	@sh scripts/setup-bench $(VENV) .venv-bench
	$(BIN)/python -m bench

lock: $(READY)  ## pin the newest versions that requirements/*.in allow
	@sh scripts/lock

clean:  ## remove environments and caches
	rm -rf $(VENV) .venv-bench .venv-trace .venv-vendors .mypy_cache .ruff_cache .pytest_cache .hypothesis
