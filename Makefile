# `make train` and `make test` do all set-up: they make the environment once and renew it when a lock changes.
#   PYTHON  the interpreter that a new environment is made with: 3.11, 3.12 or 3.13
#   VENV    the environment's folder; one that is there already is kept and added to
#   ARGS    more options for the command, as in: make test ARGS="-k search -x -n 0"
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN = $(VENV)/bin
# Two files of tests side by side: most of their time is spent in compilers of one thread.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile
STAMP = $(VENV)/azjax-installed
EXPORT = $(BIN)/uv export --quiet --frozen --no-header --no-annotate --no-hashes --no-emit-project --extra dev

.DEFAULT_GOAL := help
.PHONY: help setup train test slow notebooks docs lint format types lock locked

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP)  ## the environment alone: from uv.lock where uv is installed, else with venv and pip

train: $(STAMP)  ## train Crosshair for some minutes; ends with a rating table and elo.png
	$(BIN)/azjax train crosshair --preset quick $(ARGS)

test: $(STAMP)  ## the tests, without those marked slow
	$(PYTEST) $(ARGS)

slow: $(STAMP)  ## the tests marked slow
	$(PYTEST) -m slow $(ARGS)

notebooks: $(STAMP)  ## run every notebook from top to bottom
	$(BIN)/python -m pytest --nbmake notebooks $(ARGS)

docs: $(STAMP)  ## the pages of docs/ and the API into build/docs; fails on a link that leads nowhere
	$(BIN)/mkdocs build --strict # not --quiet, which hides warnings from --strict

lint: $(STAMP)  ## check format and lint, changing nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check

format: $(STAMP)  ## format, and mend what lint can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

types: $(STAMP)  ## the type checker
	$(BIN)/ty check --python $(VENV)

lock: $(STAMP)  ## after a change of pyproject.toml: write uv.lock, and requirements.lock from it
	$(BIN)/uv lock
	$(EXPORT) --output-file requirements.lock

locked: $(STAMP)  ## check that both locks belong to pyproject.toml
	$(BIN)/uv lock --check
	$(EXPORT) | cmp - requirements.lock

SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
, := ,
need = $(1) 2>/dev/null || { echo "$(2)" >&2; exit 1; }
need_supported = $(call need,$(PYTHON) -c '$(SUPPORTED)',azjax needs Python 3.11 to 3.13 and \"$(PYTHON)\" is none of them: try make PYTHON=python3.12)
need_venv = $(call need,$(PYTHON) -c 'import venv$(,) ensurepip',\"$(PYTHON)\" has no venv module: install it (on Debian and Ubuntu the package python3-venv) or uv)

ifeq ($(shell command -v uv 2>/dev/null),)
CREATE = $(need_supported); $(need_venv); $(PYTHON) -m venv $(VENV)
INSTALL = { $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip; } && \
	$(BIN)/python -m pip install -r requirements.lock && $(BIN)/python -m pip install --no-deps -e .
else
# Unless PYTHON is given, uv finds a supported Python itself. --seed: with pip, so that `pip install` after
# `source .venv/bin/activate` is this environment's.
CREATE = $(if $(filter file,$(origin PYTHON)),,$(need_supported);) \
	uv venv --seed $(if $(filter file,$(origin PYTHON)),,--python $(PYTHON)) $(VENV)
INSTALL = UV_PROJECT_ENVIRONMENT=$(VENV) uv sync --frozen --inexact --extra dev --python $(BIN)/python
endif

$(STAMP): pyproject.toml uv.lock requirements.lock
	@if [ -e $(BIN)/python ] || [ -L $(BIN)/python ]; then \
	  $(call need,$(BIN)/python -c '$(SUPPORTED)',the Python of $(VENV) is gone or not one of 3.11 to 3.13: remove that folder or choose another with VENV=...); \
	else $(CREATE); fi
	@echo "azjax: installing into $(VENV)"
	@$(INSTALL)
	@touch $@
