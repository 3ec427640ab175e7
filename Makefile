# Thin on purpose: the set-up is src/manyhands/cli/bootstrap.py, the commands are `manyhands COMMAND`.
# make lab ARGS=--no-browser     make test ARGS="-k launch"     make build NB=06_ddp
# TORCH_INDEX= or TORCH_FIND_LINKS= names another place for PyTorch (a CPU build, another CUDA);
# MANYHANDS_PYTHON= names a Python that is not on PATH.

ARGS ?=
NB ?=
# Processes that share the tests: one more than two cores, for a test that waits (for a limit, a hang's report, a page) leaves its core to another.
WORKERS ?= 3
TORCH_INDEX ?= $(MANYHANDS_TORCH_INDEX)
TORCH_FIND_LINKS ?= $(MANYHANDS_TORCH_FIND_LINKS)
export MANYHANDS_TORCH_INDEX := $(TORCH_INDEX)
export MANYHANDS_TORCH_FIND_LINKS := $(TORCH_FIND_LINKS)

BOOTSTRAP = python3 src/manyhands/cli/bootstrap.py
RUN = @$(BOOTSTRAP) run
RUN_WITH_SITE = $(RUN) --with dev

.PHONY: help lab test test-quick setup offline build adopt slides site check coverage test-gpu test-containers test-oldest test-wheel bench doctor clean python3

##@ Learners
help:               ## this list
	@awk -F ':[^#]*## ' '/^##@/ {printf "%s%s:\n", gap, substr($$0, 5); gap = "\n"} /^[a-z-]+:[^#]*## / {printf "  make %-17s%s\n", $$1, $$2}' \
	  $(firstword $(MAKEFILE_LIST))

lab: python3        ## open the course in JupyterLab
	$(RUN) --horovod-later manyhands lab $(ARGS)

doctor: python3     ## what this machine can do
	$(RUN) --horovod-later manyhands doctor $(ARGS)

setup: python3      ## make or mend the environment, nothing else
	@$(BOOTSTRAP) setup

offline: python3    ## all that the set-up fetches, in one folder, for a machine without a network
	@$(BOOTSTRAP) offline

##@ Maintainers
test: export MANYHANDS_UNCHANGED ?= skip
test: python3       ## every test; of the mutants those that have not passed yet as they are now (MANYHANDS_UNCHANGED=run: all)
	$(RUN_WITH_SITE) pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-quick: python3 ## the unit tests, the drift test, one lab and one notebook: a few minutes
	$(RUN) pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/unit tests/test_drift.py \
	  "tests/labs/test_labs.py::test_solution_gets_full_marks[06_ddp]" \
	  "tests/notebooks/test_notebooks.py::test_every_output_is_as_stored[notebooks/00_preflight.ipynb]" $(ARGS)

coverage: python3   ## the tests, and which lines they run, also in kernels and on ranks: a table, and pages in build/coverage/pages
	$(RUN_WITH_SITE) tests.coverage_run -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

build: python3      ## sources -> notebooks, solutions, labs
	$(RUN) manyhands build $(NB) $(ARGS)

adopt: python3      ## write an edited notebook back to its source
	$(RUN) manyhands adopt $(NB) $(ARGS)

slides: python3     ## slides/*.md -> HTML and PDF in slides/built/
	$(RUN) manyhands slides $(NB) $(ARGS)

site: python3       ## the course as pages in build/site/: tutorials, labs, decks, manuals; needs no server
	$(RUN_WITH_SITE) manyhands site $(ARGS)

check: python3      ## what a maintainer runs before a commit, the cheapest check first
	$(RUN) manyhands build --check --no-execute $(NB)
	$(RUN) pytest -q -x $(wildcard tests/unit/test_walls.py) tests/unit $(ARGS)
	$(RUN) manyhands validate $(NB)

test-containers: python3   ## build the images of docker/ and test them: half an hour, not part of `make test`
	$(RUN) pytest -m containers tests/containers $(ARGS)

test-oldest: python3 ## the notebooks on the oldest PyTorch that a site may have: half an hour and gigabytes, not part of `make test`
	$(RUN) pytest -m oldest -s tests/oldest $(ARGS)

test-wheel: python3 ## install the wheel next to the oldest and the newest PyTorch: minutes and gigabytes, not part of `make test`
	$(RUN) pytest -m wheel -s tests/wheel $(ARGS)

test-gpu: python3   ## the tests that need a GPU
	$(RUN) pytest -m gpu $(ARGS)

bench: python3      ## the figures of docs/BENCHMARKS.md
	$(RUN) benchmarks $(ARGS)

clean:              ## remove the environment and what tests left; work/, attendees' homes (.manyhands/hub) and the cached Horovod wheel stay
	rm -rf .venv .pytest_cache build
	@test ! -d .manyhands || find .manyhands -mindepth 1 -maxdepth 1 ! -name hub -exec rm -rf {} +

python3:
	@command -v python3 >/dev/null || { echo "python3 was not found: install Python 3.11, 3.12 or 3.13 (Debian, Ubuntu: apt-get install python3 python3-venv)"; exit 1; }
