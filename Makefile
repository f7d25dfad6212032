# Every command of the README. `make` alone explains them; written for GNU Make 3.81 and any POSIX shell.

.DEFAULT_GOAL := help
.PHONY: help setup reproduce check run record compare show report matrix bisect figures notebooks lab test test-browser lint bench lock clean

# With PYTHON= the caller's environment is used as it is, otherwise .venv.
ifdef PYTHON
python := "$(PYTHON)"
else
python := .venv/bin/python
# Both would lead the Python of .venv to other packages.
unexport PYTHONHOME PYTHONPATH
endif

harness := $(python) -m reproduce
nb := $(if $(NB),--nb "$(NB)")
force := $(if $(FORCE),--force)
replace := $(if $(REPLACE),--replace)
jobs := $(if $(JOBS),--jobs "$(JOBS)")
parameters := $(foreach each,$(PARAMETERS),--parameter "$(each)")
new_enough := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
UV := uv

##@ The main job
setup: ## Make .venv from requirements.txt, unless it is up to date (about 1 min, 1.5 GB)
ifdef PYTHON
	@$(python) $(new_enough) || { echo 'set-up: PYTHON=$(PYTHON) is no Python 3.11 or newer that starts.' \
	  'Name another, or leave PYTHON= out.' >&2; exit 2; }
	@$(python) -m reproduce.bootstrap --active
else
# A name can lead to a pyenv shim that does not answer, so every folder of PATH gets its turn.
	@if $(python) -m reproduce.bootstrap --ready >/dev/null 2>&1; then exit 0; fi; \
	for name in python3.11 python3.12 python3.13 python3; do \
	  IFS=:; for folder in $$PATH; do \
	    if [ -x "$$folder/$$name" ] && "$$folder/$$name" $(new_enough); then \
	      unset IFS; exec "$$folder/$$name" -m reproduce.bootstrap; \
	    fi; \
	  done; \
	done; \
	echo 'set-up: no Python 3.11 or newer is on PATH. Install Python 3.11 (python.org, apt, brew, pyenv, conda),' \
	  'or name one: make PYTHON=/path/to/python' >&2; exit 2
endif

# `check` is the same rule by another name, so the two cannot drift apart. The comparison also follows a run
# that failed, to show how far it came; the worse of both statuses counts. Where nothing could start (status 2)
# there is nothing new to compare. With --json the comparison alone is the output. An interrupted or killed run ends
# it all (the trap, because some shells go on when the harness takes the interruption and ends in good order).
reproduce: ## Run what is stale, in both precisions, and compare with the reference (2.5 min, 2 GB)
check: ## The same, by its other name
reproduce check: setup
	@trap 'exit 130' INT; \
	ran=0; $(harness) run $(nb) $(force) $(jobs) $(parameters) $(if $(findstring --json,$(ARGS)),>&2) || ran=$$?; \
	[ $$ran -lt 128 ] || exit $$ran; \
	status=0; [ $$ran -eq 2 ] || $(harness) check $(nb) $(ARGS) || status=$$?; \
	[ $$status -ge $$ran ] || status=$$ran; \
	[ $$status -eq 0 ] || echo 'make $@: exit status' $$status \
	  '(0 agrees, 1 differs, 2 cannot compare, 3 a run failed)' >&2; \
	exit $$status

run: setup ## The first half of it: run what is stale, and compare nothing
	@$(harness) run $(nb) $(force) $(jobs) $(parameters) $(ARGS)

##@ Records
record: setup ## Record a reference and measure its noise floors; REPLACE=1 to overwrite (17 min)
	@$(harness) record $(nb) $(replace) $(force) $(jobs) $(ARGS)

compare: setup ## Compare two records or folders of records: make compare A=... B=... (seconds)
	@[ -n '$(A)' ] && [ -n '$(B)' ] || { echo 'make compare: name two records: A=... B=...' >&2; exit 2; }
	@$(harness) compare "$(A)" "$(B)" $(nb) $(ARGS)

show: setup ## Print a record as plain text: make show NB=01, or FILE=path (seconds)
	@[ -n '$(NB)$(FILE)' ] || { echo 'make show: say which record: NB=01, or FILE=path' >&2; exit 2; }
	@$(harness) show $(if $(FILE),"$(FILE)") $(nb) $(ARGS)

report: setup ## Write build/report.html and .md on all recorded runs, or to OUT=folder (seconds)
	@$(harness) report $(if $(OUT),--out "$(OUT)") $(ARGS)

figures: setup ## Draw figures/ again from the reference record (seconds)
	@$(harness) figures $(nb) $(ARGS)

##@ JAX releases
matrix: setup ## Run under nine JAX releases, each in .matrix/, compare and record; needs uv (1 h, 4 GB on disk)
	@$(harness) matrix $(if $(JAX),--jax "$(JAX)") $(nb) $(force) $(replace) $(jobs) --uv "$(UV)" $(ARGS)

bisect: setup ## Find the release that moved a number: ENTRY='01:train/loss[3]' FROM=0.6.2 TO=0.7.2; needs uv
	@[ -n '$(ENTRY)' ] && [ -n '$(FROM)' ] && [ -n '$(TO)' ] || \
	  { echo 'make bisect: say what to look for, and between which releases: ENTRY=... FROM=... TO=...' >&2; exit 2; }
	@$(harness) bisect --entry "$(ENTRY)" --from "$(FROM)" --to "$(TO)" \
	  $(if $(PRECISION),--precision "$(PRECISION)") --uv "$(UV)" $(ARGS)

##@ Notebooks
notebooks: setup ## Make the learner's copies again from notebooks/*.py (seconds)
	@$(harness) notebooks $(nb) $(ARGS)

lab: setup ## Open the notebooks, or DIR=..., in JupyterLab: on this machine only, with a token
	@$(python) -m jupyterlab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir="$(or $(DIR),notebooks)" $(ARGS)

##@ Development
test: setup ## Run all tests (15 min)
	@$(python) -m pytest -q $(ARGS)

test-browser: setup ## Use JupyterLab and the report in a Chromium, installed or named: CHROMIUM=... (2 min)
	@$(python) -m pytest -q -m browser tests/test_browser*.py $(ARGS)

lint: setup ## Check style, format and types (10 s)
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .
	@$(python) -m basedpyright

# The other libraries stay out of .venv: they bring several GB.
bench: setup ## Time the losses beside other libraries', which go to .bench/, or are in TORCH=python (30 min, 6 GB)
	@[ -n '$(TORCH)' ] || [ -f .bench/installed ] || { $(python) -m venv .bench && \
	  .bench/bin/python -m pip install -q -r benchmarks/requirements.txt && touch .bench/installed; }
	@$(python) benchmarks/losses.py --torch "$(or $(TORCH),.bench/bin/python)" $(ARGS)

lock: ## Make requirements.txt again from requirements.in and pyproject.toml; needs uv
	@command -v "$(UV)" >/dev/null || { echo 'make lock: needs uv, or its path: make lock UV=...' >&2; exit 2; }
	@"$(UV)" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	  --extra notebooks --extra lab --extra browser --extra test --no-emit-index-url --annotation-style line \
	  --custom-compile-command 'make lock  (newest versions: make lock ARGS=--upgrade)' \
	  --output-file requirements.txt $(ARGS) requirements.in pyproject.toml

clean: ## Remove build/ and the caches; the environments stay (rm -rf .venv .matrix removes them)
	@rm -rf build .pytest_cache .ruff_cache .hypothesis

help:
	@echo 'Usage: make <target> [NAME=value ...]'
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^## / { print "  " substr($$0, 4) } \
	  /^[a-z-]+:.*## / { printf "  %-14s%s\n", $$1, $$2 }' Makefile

##@ Values
## NB=01       only the notebooks whose name starts so
## FORCE=1     reproduce, check, run, record, matrix: run what is fresh, too
## REPLACE=1   record, matrix: overwrite the record that is there
## PARAMETERS="LEARNING_RATE=0.0303"  reproduce, run: run with other parameters; name the notebook, NB=01
## JOBS=2      runs at the same time (default: one a core)
## JAX="0.8.3 0.10.2"  matrix: only these releases
## PRECISION=float32    bisect: in this precision (default: float64)
## UV=...      matrix, bisect, lock: the uv to use
## OUT=...     report: the folder to write it to
## TORCH=...   bench: a Python that has benchmarks/requirements.txt
## DIR=...     lab: a folder of your own, such as one with copies of the notebooks
## PYTHON=...  use this Python and its packages as they are, no .venv (conda: PYTHON=python)
## ARGS=...    more options for the last command of a target, such as ARGS=--json
