# The project's commands. Everything runs in VENV, which `make` makes when it is missing, when its recipe changed, or when
# PYTHON is given and is another one than it was made with. Without PYTHON it is the first of FOUND that is new enough.
VENV := .venv
DEMO_VENV := .venv-demo
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LEAST := $(shell sed -n 's/^requires-python = ">=3\.\([0-9]*\)"$$/\1/p' pyproject.toml)
FOUND := python3.11 python3.12 python3.13 python3.14 python3
ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, $(LEAST)))'
WHICH := -c 'import sys; print(sys.version, sys.base_prefix)'
GIVEN := $(PYTHON)
ifndef PYTHON
PYTHON = $(shell for name in $(FOUND); do if $$name $(ENOUGH) 2>/dev/null; then command -v $$name; break; fi; done)
endif
ifneq ($(wildcard $(BIN)/python),)
ifneq ($(GIVEN)$(if $(wildcard $(READY)),,unfinished),)
OTHER := $(shell [ "`$(PYTHON) $(WHICH) 2>&1`" = "`$(BIN)/python $(WHICH) 2>&1`" ] || echo --clear)
endif
endif
# The package is links to these files, made by the installation (setup.py): LINKED has the list that they were made of.
LIST := find frontend runtime compiler ops.yaml -name '*.py' -o -name '*.yaml' -o -name '*.h' -o -name py.typed \
  | LC_ALL=C sort
LINKED := build/linked.txt
WHOLE := -e '.[test,dev]'
LINKS := --no-deps --no-build-isolation -e .
CHANGED := $(shell $(LIST) | cmp -s - $(LINKED) 2>/dev/null || echo changed-files)
# A folder of models as examples/check_models.py takes it, for the parts of `make bench` that run saved networks.
MODELS ?= ../shared/models
# What bench/networks.py is told besides: --quick, --cases WORD, --compare OLD.json. BENCH_PEERS=mxnet,torch: peers.
BENCH_FLAGS ?=
QUICK := $(findstring --quick,$(BENCH_FLAGS))

.PHONY: install demo run-demo test test-all lint types bench clean other-python changed-files

install: $(READY)

# The demo needs little: where the environment for all is not there, it has a small one of its own.
demo:
	@$(MAKE) --no-print-directory run-demo $(if $(wildcard $(READY)),,VENV=$(DEMO_VENV) WHOLE="-e '.[demo]'")

run-demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" --hypothesis-profile same-cases

test-all: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/networks.py --models $(MODELS) $(BENCH_FLAGS)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/startup.py $(if $(QUICK),--rounds 2)
	$(BIN)/python bench/codegen.py $(if $(QUICK),--rounds 3)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/eager.py
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/operators.py $(if $(QUICK),--quick)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/train.py $(if $(QUICK),--rounds 1 --cases mlp)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/gluon.py $(if $(QUICK),--rounds 1 --cases mlp)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/control_flow.py $(if $(QUICK),--rounds 1 --cases rnn)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/loader.py $(if $(QUICK),--rounds 1 --cases caller)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/images.py $(if $(QUICK),--rounds 1 --cases rate)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/small.py $(if $(QUICK),--rounds 1 --count 48)
ifeq ($(QUICK),)
	if [ -e $(MODELS)/cases.json ]; then BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/memory.py $(MODELS); fi
	if [ -e $(MODELS)/cases.json ]; then $(BIN)/python bench/accuracy.py $(MODELS); fi
endif

# Where nothing but the list of files is new the links alone are made, which needs no index of packages.
$(READY): pyproject.toml setup.py $(if $(OTHER),other-python) $(CHANGED)
	@python="$(PYTHON)"; if [ -z "$$python" ]; then \
	  echo "no Python 3.$(LEAST) or later among $(FOUND): install one, or give make PYTHON=/path/to/python" >&2; exit 1; \
	elif ! $$python $(ENOUGH); then \
	  echo "PYTHON=$$python does not run, or is not 3.$(LEAST) or later" >&2; exit 1; \
	elif [ -n "$(OTHER)" ] || [ ! -e $@ ]; then echo "$$python -m venv $(OTHER) $(VENV)"; $$python -m venv $(OTHER) $(VENV); \
	  echo "installing, a few minutes the first time"; fi
	$(BIN)/python -m pip install -q --disable-pip-version-check \
	  $(if $(filter-out changed-files,$?),$(WHOLE),$(LINKS))
	$(LIST) > $(LINKED)
	touch $@

clean:
	rm -rf $(VENV) $(DEMO_VENV) build dist *.egg-info
