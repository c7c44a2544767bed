# The project's commands. Everything runs in .venv, which `make` makes when it is missing or when its recipe changed.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TREE := $(VENV)/tree
# A folder of models as examples/check_models.py takes it, for the parts of `make bench` that run saved networks.
MODELS ?= ../shared/models
# What bench/networks.py is told besides: --quick, --cases WORD, --compare OLD.json. BENCH_PEERS=mxnet,torch: peers.
BENCH_FLAGS ?=
QUICK := $(findstring --quick,$(BENCH_FLAGS))

.PHONY: demo test test-all lint types bench clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .

# mypy does not see that setup.py maps three folders to one package, so it gets links laid out as the package is.
types: $(READY)
	rm -rf $(TREE) && mkdir -p $(TREE)/mxc
	ln -s $(CURDIR)/frontend/* $(CURDIR)/compiler $(CURDIR)/runtime $(TREE)/mxc/
	MYPYPATH=$(TREE) $(BIN)/mypy

bench: $(READY)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/networks.py --models $(MODELS) $(BENCH_FLAGS)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/startup.py $(if $(QUICK),--rounds 2)
	BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/eager.py
ifeq ($(QUICK),)
	if [ -e $(MODELS)/cases.json ]; then BENCH_PEERS="$(BENCH_PEERS)" $(BIN)/python bench/memory.py $(MODELS); fi
	if [ -e $(MODELS)/cases.json ]; then $(BIN)/python bench/accuracy.py $(MODELS); fi
endif

$(READY): pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[test,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
