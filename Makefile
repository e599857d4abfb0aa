# `make run` runs the main job and `make test` the tests; both first set up what is missing. `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help setup run systems images test check lint format native bench fuzz requirements clean vagrant test-provision test-fresh test-systems

# The first Python of at least 3.11, unless one is given: make run PYTHON=python3.13
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && command -v $$p && break; done)
VENV     := .venv
BIN      := $(VENV)/bin
PACKAGES := $(VENV)/packages
PIP      := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
READY    := $(VENV)/ready
CLIENTS  := .systems/requirements.txt
MODULES  := $(patsubst %/package-lock.json,%/node_modules/.package-lock.json,$(wildcard systems/*/package-lock.json))
COLLECTED := $(VENV)/collected
ARCHIVED := $(VENV)/archived
COMPILED := $(VENV)/compiled
ROOMS    := analysis experiments node systems testbed topologies
EXPERIMENT ?= link-failure
TARGET ?= capture
SECONDS ?= 60
# Tests are shared among workers in lanes (tests/conftest.py): some of them mostly wait, so more workers than processors.
SHARED = --maxprocesses 8 --dist loadgroup --no-loadscope-reorder
PROCESSORS = $$(nproc)
QUICK = not (network or uml or browser or spark or slow)
export PATH := $(PATH):/usr/sbin:/sbin
# The suite starts thousands of Pythons; each would compile Cutset again.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: packages-run $(READY) $(ARCHIVED) $(COMPILED) ## set up what is missing, and start nothing

run: packages-run $(READY) $(ARCHIVED) ## set up, then run the main job: cutset run link-failure
	@$(BIN)/cutset run $(EXPERIMENT) $(ARGS)

systems: packages-systems $(READY) $(CLIENTS) $(MODULES) ## get the systems under test that are not ours, and what their clients import

images: packages-images ## make the image cutset:debian-13: the systems under test in Debian 13's versions
	@sh testbed/provision/images.sh

test: packages-test $(READY) $(CLIENTS) ready-to-test ## set up, then lint and run the tests
	@$(BIN)/python -m pytest -n $$(($(PROCESSORS) + 3)) $(SHARED) $(ARGS)

check: packages-test $(READY) $(CLIENTS) ready-to-test ## lint and the quick tests, for everyday work
	@$(BIN)/python -m pytest -n $$(($(PROCESSORS) + 1)) $(SHARED) -m "$(QUICK)" $(ARGS)

# Lint beside a collection of the tests, which compiles them once for all workers.
.PHONY: ready-to-test
ready-to-test: $(READY)
	@$(MAKE) --no-print-directory -j 2 lint $(COLLECTED) $(ARCHIVED)

$(COLLECTED): $(shell find tests -name '*.py')
	@$(BIN)/python -m pytest --collect-only -qq >$@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

lint: $(READY) ## ruff, mypy --strict, import contracts, undeclared imports, and the English of code and docs
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@$(BIN)/deptry . --config deptry.toml --no-ansi >$(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m tests.plain_english
	@$(BIN)/lint-imports --no-logo >$(VENV)/contracts.log 2>&1 || { cat $(VENV)/contracts.log; exit 1; }

format: $(READY) ## let ruff format the code
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

native: $(READY) ## compile the nodes' core, virtual time and Sprinkler: twice as fast; two minutes, needs a C compiler
	@$(BIN)/python -m node.native

bench: packages-test $(READY) $(ARCHIVED) ## measure, print a table and write bench.json
	@$(BIN)/python -m tests.bench $(ARGS)

fuzz: packages-test $(READY) ## look for input that breaks a reader of captures, runs, archives...: TARGET=capture SECONDS=60
	@$(BIN)/python -m tests.fuzz $(TARGET) --seconds $(SECONDS)

vagrant: ## a lab in a virtual machine; LAB=3 make vagrant: three, and an inventory of them (docs/hosts.md)
	@vagrant up

test-systems: packages-systems packages-test $(READY) $(CLIENTS) $(MODULES) ## try all systems under test that are not ours
	@CUTSET_TEST_SYSTEMS=1 $(BIN)/python -m pytest tests/systems $(ARGS)

test-provision: packages-test $(READY) ## set up in a fresh Debian 12, as root: some minutes, 3 GB, the network (not part of make test)
	@sh tests/testbed/provision/fresh_debian.sh

test-fresh: packages-test $(READY) ## make test in a fresh Debian 12, as root: some minutes more than make test, some GB, the network
	@ARGS='$(ARGS)' sh tests/testbed/provision/fresh_debian.sh fresh

requirements: $(READY) ## pin and hash requirements.in again (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --quiet requirements.in -o requirements.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --quiet systems/requirements.in -o systems/requirements.txt

clean: ## remove the virtual environment and caches, keep the runs
	rm -rf $(VENV) .systems systems/*/node_modules .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info

.PHONY: packages-run packages-systems packages-images packages-test
packages-run packages-systems packages-images packages-test: packages-%:
	@test -n "$(PYTHON)" || { echo "cutset: needs Python 3.11 or later" >&2; exit 3; }
	@PYTHON="$(PYTHON)" sh testbed/provision/provision.sh $*

$(READY): pyproject.toml $(PACKAGES)
	@$(PIP) --no-build-isolation --editable .
	@touch $@

# Where Python may write no bytecode (PYTHONDONTWRITEBYTECODE), each command would compile all that it imports.
$(COMPILED): $(shell find $(ROOMS) -name '*.py') | $(READY)
	@$(BIN)/python -m compileall -q $(ROOMS)
	@touch $@

# Lets Spark start in half the time.
$(ARCHIVED): $(PACKAGES) | $(READY)
	@$(BIN)/python -m analysis.archiving
	@touch $@

$(CLIENTS): systems/requirements.txt | $(READY)
	@rm -rf .systems/python && $(PIP) --require-hashes --no-build-isolation \
		--target .systems/python -r systems/requirements.txt && cp systems/requirements.txt $@

# Node.js looks for modules beside the file that imports them, and above; so a link leads there. The lock has a hash of each.
systems/%/node_modules/.package-lock.json: systems/%/package-lock.json systems/%/package.json | packages-systems
	@rm -rf .systems/node/$* && mkdir -p .systems/node/$* && cp systems/$*/package.json systems/$*/package-lock.json .systems/node/$*
	@cd .systems/node/$* && { npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1 || { cat npm.log >&2; exit 1; }; }
	@ln -sfn ../../.systems/node/$*/node_modules systems/$*/node_modules && touch $@

# What has no wheel (pyspark) is built by the setuptools of requirements.txt, which comes first, by its hash: in isolation pip
# would fetch a build backend by name alone, and run it.
$(PACKAGES): requirements.txt | packages-run
	@cmp -s requirements.txt $@ || { \
		echo "setting up $(VENV): Python packages at the versions and hashes of requirements.txt" >&2 && \
		"$(PYTHON)" -m venv --clear $(VENV) && \
		sed -n '/^setuptools==/,/[^\\]$$/p' requirements.txt >$(VENV)/backend.txt && \
		$(PIP) --require-hashes --only-binary :all: -r $(VENV)/backend.txt && \
		$(PIP) --require-hashes --no-build-isolation --use-pep517 -r requirements.txt && \
		cp requirements.txt $@; }
	@touch $@
