# `make` lists the targets and the variables. Each target sets up what it needs first, once.

VENV        ?= .venv
PYTHON      ?= python3
EXTRAS      ?= engine,lab,dev
TORCH       ?= $(shell sed -n 's/^torch==//p' constraints.txt)
TORCH_INDEX ?=
PYTEST_ARGS ?=
REPORT_ARGS ?=
LAB_ARGS    ?=

comma := ,
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help setup lab test test-statistics report lint clean

help:
	@echo 'Targets'
	@echo '  make lab      set up, then open JupyterLab on notebooks/00_quickstart.ipynb'
	@echo '  make test     set up, lint, run the tests; says how many ran and why any was skipped'
	@echo '  make test-statistics'
	@echo '                set up, then the long tests of losslessness: many seeds, the embedded pair; minutes'
	@echo '  make report   set up, then decode the prompts with every proposer and write the report'
	@echo '  make lint     set up, then ruff and the import layers'
	@echo '  make setup    set up only: the virtual environment and all that is installed in it'
	@echo '  make clean    remove the virtual environment, builds and caches'
	@echo
	@echo 'Variables (make TARGET NAME=value)'
	@echo '  VENV=$(VENV)  the virtual environment'
	@echo '  PYTHON=$(PYTHON)  the Python it is made from, 3.11 or newer'
	@echo '  EXTRAS=$(EXTRAS)  what is installed; without "engine" there is no torch, and no live decoding'
	@echo '  TORCH=$(TORCH)  the torch version to install; "skip" leaves torch to you or to pip'
	@echo '                a torch that is already in the environment is kept, whatever its version'
	@echo '  TORCH_INDEX=$(TORCH_INDEX)  where torch comes from, when not from the default index; the CPU build (small):'
	@echo '                TORCH_INDEX=https://download.pytorch.org/whl/cpu'
	@echo '  PYTEST_ARGS=$(PYTEST_ARGS)  more for pytest, such as "-m slow" or "tests/theory"'
	@echo '  REPORT_ARGS=$(REPORT_ARGS)  more for "specworkbench report", such as --quick'
	@echo '  LAB_ARGS=$(LAB_ARGS)  more for "specworkbench lab"'

lab: setup
	$(BIN)/specworkbench lab $(LAB_ARGS)

test: lint
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -rs $(PYTEST_ARGS)

test-statistics: setup
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m slow -rs tests/equivalence tests/experiments $(PYTEST_ARGS)

report: setup
	$(BIN)/specworkbench report $(REPORT_ARGS)

lint: setup
	$(BIN)/ruff check
	$(BIN)/lint-imports

setup: $(STAMP)

# torch goes first, in a call of its own, pinned: a range would make pip look past a build that is at hand.
# The second call leaves the pin out, so that a torch already there is never replaced.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "specworkbench needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1): make PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(VENV) holds $$($(BIN)/python --version), and specworkbench needs 3.11 or newer: make clean, then make PYTHON=python3.11" >&2; exit 1; }
ifneq ($(TORCH),skip)
ifneq ($(findstring engine,$(EXTRAS)),)
	@$(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' || { \
	  set -x; $(BIN)/python -m pip install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) 'torch==$(TORCH)'; }
endif
endif
	grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -m pip install -c $(VENV)/constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
