# Two commands from a fresh machine: `make demo` and `make test`. Each sets up `.venv` by itself
# from Python >= 3.11, a C++ compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard src/gradsieve/kernel/*.?pp src/gradsieve/kernel/src/*)

# What runs without any extra, and not in the sources, which have no kernel for this Python.
LOWEST := -p no:cacheprovider $(filter-out tests/test_docs.py tests/test_estimators.py tests/test_house.py \
	tests/test_model.py tests/test_paper.py tests/test_site.py tests/test_bench.py, $(wildcard tests/test_*.py)) tests/sieve \
	tests/recipe tests/training tests/cli/test_train.py --ignore=tests/training/test_training_step.py

.PHONY: help demo quick test test-lowest lint types bench docs paper fuzz faults sanitize wheel clean

help:
	@echo "make demo      train networks with the sieve off and on, compare, write a report (minutes)"
	@echo "make quick     the same with fewer networks and updates (half a minute)"
	@echo "make test      every test, the linter and the type checker"
	@echo "make test-lowest  the core's tests with the oldest versions that are allowed"
	@echo "make bench     what an update costs, against PyTorch and JAX"
	@echo "make docs      the documentation, as HTML under docs/_build"
	@echo "make paper     the paper as PDF under build/paper, by pandoc and Chromium"
	@echo "make fuzz      fifty times as many damaged files as the tests have (an hour)"
	@echo "make faults    a thousand kills, full disks, two writers (an hour)"
	@echo "make sanitize  the kernel's tests under the address and undefined-behaviour sanitizers"
	@echo "make wheel     wheels for this machine and the sdist, under dist, tried without a compiler"
	@echo "make clean     remove .venv and everything built"
	@echo
	@echo "After the first of them, this network learns in seconds:"
	@echo "  $(BIN)/gradsieve train temporal_order --length 50 --epochs 40 --output runs/first"
	@echo "  $(BIN)/gradsieve report runs/first --output report.html"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("gradsieve needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.stamp: $(BIN)/python $(SOURCES)
	@echo "Setting up .venv and compiling the kernel (about a minute) …"
	$(PIP) .
	@touch $@

$(VENV)/dev.stamp: $(BIN)/python $(SOURCES)
	@echo "Setting up .venv with everything that the tests use (some minutes) …"
	$(PIP) torch==2.13.0
	$(PIP) scikit-build-core nanobind ninja cmake
	$(PIP) --no-build-isolation -e '.[torch,ray,onnx,parquet,tensorboard,sklearn,docs,dev]'
	@touch $(VENV)/core.stamp $@

demo: $(VENV)/core.stamp
	$(BIN)/gradsieve demo

quick: $(VENV)/core.stamp
	$(BIN)/gradsieve demo --quick

test: $(VENV)/dev.stamp lint types
	$(BIN)/pytest -n 2 --dist loadgroup

test-lowest: $(BIN)/python
	$(PYTHON) -m venv build/lowest
	$(PYTHON) tests/lowest.py > build/lowest/oldest.txt
	build/lowest/bin/pip install --quiet --disable-pip-version-check -r build/lowest/oldest.txt . \
	    'pytest>=8' 'hypothesis>=6.100' 'scipy>=1.13' 'threadpoolctl>=3.5' torch==2.13.0
	build/lowest/bin/pytest $(LOWEST)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

bench: $(VENV)/dev.stamp
	$(PIP) '.[bench]'
	$(BIN)/gradsieve bench

docs: $(VENV)/dev.stamp
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

paper:
	sh paper/build.sh build/paper

fuzz: $(VENV)/dev.stamp
	GRADSIEVE_FUZZ=$${GRADSIEVE_FUZZ:-50} $(BIN)/pytest -n 2 -k mutants tests

faults: $(VENV)/dev.stamp
	GRADSIEVE_FAULTS=$${GRADSIEVE_FAULTS:-1000} $(BIN)/pytest -n 2 --dist loadgroup tests/faults

sanitize: $(VENV)/dev.stamp
	PATH="$(CURDIR)/$(BIN):$$PATH" sh tests/sanitize.sh

wheel:
	sh tests/wheel.sh

clean:
	rm -rf build dist $(VENV)
