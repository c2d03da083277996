# The whole house from here: `make help` says what there is.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: help up down purge doctor test test-long corpus check format bench lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 18

$(READY): requirements/dev.lock pyproject.toml scripts/setup
	@sh scripts/setup $(VENV)
	@touch $(READY)

# Stopping, removing and looking must work without a network too: they take the environment as it is.
$(BIN)/tera:
	@$(MAKE) --no-print-directory $(READY)

up: $(READY)  ## set up, and start the cloud on this machine (as root: with real containers)
	@sh scripts/prepare-engine
	@$(BIN)/tera up

down: $(BIN)/tera  ## stop it, instances too; GUESTS=keep lets them run on
	@$(BIN)/tera down $(if $(filter keep,$(GUESTS)),--keep-guests)

purge: $(BIN)/tera  ## remove all that it made on this machine; asks, YES=1 does not
	@$(BIN)/tera purge $(if $(YES),--yes)

doctor: $(BIN)/tera  ## check everything, and say what to repair
	@$(BIN)/tera doctor

test: $(READY)  ## set up, and run the tests on all cores, except the long ones
	@sh scripts/postgres
	$(BIN)/python -m pytest -n auto -m "not long"

test-long: $(READY)  ## run the long tests: simulations, walks over every fault, large property tests
	@sh scripts/postgres
	$(BIN)/python -m pytest -n auto -m "long"

corpus: $(READY)  ## trace every script of tests/corpus, with PyTorch in an environment of its own
	@sh scripts/setup-trace $(VENV) .venv-trace
	TERA_CORPUS=all .venv-trace/bin/python -m pytest tests/corpus tests/unit/workload

check: $(READY)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## write the format and the safe lint repairs
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## measure, and print what was measured
	@sh scripts/setup-bench $(VENV) .venv-bench
	$(BIN)/python -m bench

lock: $(READY)  ## pin the newest versions that requirements/*.in admit
	@sh scripts/lock

clean:  ## remove what set-up and tests made here
	rm -rf $(VENV) .venv-bench .venv-trace .mypy_cache .ruff_cache .pytest_cache .hypothesis
