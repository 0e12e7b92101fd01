# `make` lists the targets and the variables. Each target sets up what it needs first, once.

VENV        ?= .venv
PYTHON      ?= python3
EXTRAS      ?= engine,lab,dev
TORCH       ?= $(shell sed -n 's/^torch==//p' constraints.txt)
TORCH_INDEX ?=
PYTEST_ARGS ?=
TEST_JOBS   ?= 2
SCREENSHOTS ?= build/screenshots
REPORT_ARGS ?=
LAB_ARGS    ?=
SETTINGS       ?= embedded
VLLM_PYTHON    ?=
RESULTS        ?= benchmarks/results
BENCHMARK_ARGS ?=

comma := ,
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help setup lab test test-statistics test-cluster test-browser report benchmark benchmark-gpu lint clean

help:
	@echo 'Targets'
	@echo '  make lab      set up, then open JupyterLab on notebooks/index.ipynb'
	@echo '  make test     set up, lint, run the tests; says how many ran and why any was skipped'
	@echo '  make test-statistics'
	@echo '                set up, then the long tests of losslessness: many seeds, the embedded pair; minutes'
	@echo '  make test-cluster'
	@echo '                install Ray as well, then run studies on a Ray cluster of two nodes on this machine'
	@echo '  make test-browser'
	@echo '                install Playwright as well, then open every notebook in JupyterLab and Voila with the Chromium of'
	@echo '                this system (CHROMIUM, or on the PATH); keeps screenshots in SCREENSHOTS'
	@echo '  make report   set up, then decode the prompts with every proposer and write the report'
	@echo '  make benchmark'
	@echo '                set up, then measure beside transformers, vLLM and ourselves on the CPU; see benchmarks/README.md'
	@echo '  make benchmark-gpu'
	@echo '                the same on a CUDA GPU (never run yet), into RESULTS-cuda'
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
	@echo '  TEST_JOBS=$(TEST_JOBS)  processes that run tests side by side; 0 runs them in one, for a debugger'
	@echo '  SCREENSHOTS=$(SCREENSHOTS)  where make test-browser keeps its pictures'
	@echo '  REPORT_ARGS=$(REPORT_ARGS)  more for "specworkbench report", such as --quick'
	@echo '  LAB_ARGS=$(LAB_ARGS)  more for "specworkbench lab"'
	@echo '  SETTINGS=$(SETTINGS)  what is measured: embedded; with the models at hand also smollm2 and qwen, "embedded smollm2 qwen"'
	@echo '  VLLM_PYTHON=$(VLLM_PYTHON)  the Python of an environment with vLLM; without it, vLLM is left out'
	@echo '  RESULTS=$(RESULTS)  the folder of the measured times, as JSON'
	@echo '  BENCHMARK_ARGS=$(BENCHMARK_ARGS)  more for every benchmark, such as "--runs 10"'

lab: setup
	$(BIN)/specworkbench lab $(LAB_ARGS)

test: lint
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -rs -n $(TEST_JOBS) --dist loadfile $(PYTEST_ARGS)

test-statistics: setup
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m slow -rs tests/equivalence tests/experiments $(PYTEST_ARGS)

test-cluster:
	$(MAKE) setup EXTRAS=$(EXTRAS),cluster
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m cluster -rs tests/experiments/study $(PYTEST_ARGS)

test-browser:
	$(MAKE) setup EXTRAS=$(EXTRAS),browser
	HF_HUB_OFFLINE=1 SPECWORKBENCH_SCREENSHOTS='$(abspath $(SCREENSHOTS))' \
	  $(BIN)/python -m pytest -m browser -rs tests/browser $(PYTEST_ARGS)

report: setup
	$(BIN)/specworkbench report $(REPORT_ARGS)

# $(call measure,COMMAND,SETTING): one benchmark of one setting, its times written where they belong
measure = $(BIN)/python -m benchmarks.$(1) --setting $(2) --device $(DEVICE) --json $(RESULTS)/$(1)-$(2).json $(BENCHMARK_ARGS)

# One that fails, for want of a model or of memory, does not keep the others from being run.
benchmark benchmark-gpu: setup
	failed=0; \
	for setting in $(SETTINGS); do \
	  $(call measure,against_transformers,$$setting) || failed=1; \
	  $(call measure,engines,$$setting) || failed=1; \
	done; \
	if [ -n '$(VLLM_PYTHON)' ]; then $(call measure,against_vllm,smollm2) --vllm-python '$(VLLM_PYTHON)' || failed=1; \
	else echo 'vLLM is left out; VLLM_PYTHON=PATH names the Python of its environment (see benchmarks/README.md)'; fi; \
	exit $$failed

benchmark: DEVICE := cpu
benchmark-gpu: DEVICE := cuda
benchmark-gpu: RESULTS := $(RESULTS)-cuda

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
