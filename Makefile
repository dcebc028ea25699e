# On a fresh machine (Python 3.11 or newer, git, make): `make demo` and `make test` do everything, including the venv; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/$(PIP_INSTALL) -c constraints.txt
# How pip gets PyTorch, which only the tests of its adapter need. Where the configured index offers the CUDA build, which takes gigabytes,
# pass the index of the CPU builds: make test TORCH="torch --index-url ADDRESS", the address from PyTorch's own installation page.
TORCH ?= torch
SOURCES := pyproject.toml constraints.txt

THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Two workers steal tests from each other; what several tests need is fitted once per run.
PYTEST := $(THREADS) $(BIN)/pytest -n 2 --dist worksteal $(if $(CI),--durations=25)

.DEFAULT_GOAL := help
# Every target with a description; none of them is a file.
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  %-17s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## explain a few people of the Adult data, write demo.html
	$(BIN)/python -m fasterce.cli.adult_demo

test: lint types contracts security unit  ## linters, types, import contracts, security and all tests

lint: $(VENV)/.dev  ## ruff: rules and format; names and phrases the project has retired
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/lint_vocabulary.py

types: $(VENV)/.dev  ## mypy, over src and tests
	$(BIN)/mypy

contracts: $(VENV)/.dev  ## import contracts: which module may import which
	$(BIN)/lint-imports

security: $(VENV)/.dev  ## bandit: calls that are often unsafe
	$(BIN)/bandit --quiet --recursive --severity-level medium --configfile pyproject.toml src

# Needs the internet, so it is not part of `test`; CI runs it beside.
audit: $(VENV)/.dev  ## pip-audit: known vulnerabilities of what the image installs
	$(BIN)/pip-audit --strict --require-hashes --disable-pip $(foreach lock,$(wildcard deploy/*.lock),--requirement $(lock))

lock: $(VENV)/.dev  ## renew deploy/*.lock: what the image installs, with hashes
	scripts/lock.sh

kernels: $(VENV)/.dev  ## compile the kernels of the search; needed once after they change
	$(THREADS) $(BIN)/python -m fasterce.kernels.warm_up

unit: $(VENV)/.dev kernels postgres chromium  ## all tests
	$(PYTEST)

# Tracing every line costs two fifths of the time on Python 3.11, so it is not part of `test`; CI runs it beside.
coverage: $(VENV)/.dev kernels postgres chromium  ## all tests with coverage; fails below the floor in pyproject.toml
	$(PYTEST) --cov --cov-report=term:skip-covered

# What depends on the versions of other libraries: tables, models, training, compiled kernels, files, the command line and the service.
VERSION_TESTS := tests/test_imports.py tests/test_explainer.py tests/test_explanation.py tests/test_guarantees.py tests/data tests/kernels tests/latent \
	tests/surrogate tests/viz tests/artifact tests/integrations/test_sklearn.py tests/integrations/test_sklearn_checks.py tests/models/adapters \
	tests/models/compiled/test_build.py tests/models/compiled/test_session.py tests/cli/test_path.py tests/cli/test_language.py tests/cli/test_adult_demo.py \
	tests/serve/test_service_same.py

test-lowest: $(VENV)-lowest/.ready  ## the tests that depend on other libraries, with the lowest version of each dependency
	$(THREADS) $(VENV)-lowest/bin/python -m fasterce.kernels.warm_up
	$(THREADS) $(VENV)-lowest/bin/pytest -q -n 2 --dist worksteal $(VERSION_TESTS)

test-latest: $(VENV)-latest/.ready  ## the same tests with the newest version of each dependency
	$(THREADS) $(VENV)-latest/bin/python -m fasterce.kernels.warm_up
	$(THREADS) $(VENV)-latest/bin/pytest -q -n 2 --dist worksteal $(VERSION_TESTS)

test-wheel: $(VENV)/.dev  ## build the wheel, install it elsewhere and run docs/getting-started.md there
	$(BIN)/pytest -q -m wheel tests/test_wheel.py

sizes: $(VENV)/.dev  ## measure sizes and install times of the extras, into docs/installation.md
	$(BIN)/python scripts/measure_sizes.py

postgres:  ## install PostgreSQL for the tests of the store, if possible
	scripts/install_postgres.sh

demo-serve: $(VENV)/.serve  ## start the service and its page on two bundled datasets, http://127.0.0.1:8000
	$(BIN)/python scripts/serve_demo.py $(ARGS)

chromium:  ## install a browser for the tests of the page, if possible
	scripts/install_chromium.sh

show: $(VENV)/.dev  ## print the table of docs/variants.md: three datasets, three methods
	$(BIN)/python scripts/show.py

show-constraints: $(VENV)/.dev  ## print the tables of docs/measured.md: constraints, options, robustness
	$(BIN)/python scripts/show_constraints.py

show-fit-budget: $(VENV)/.dev  ## print the table of docs/performance.md: quality against max_fit_rows
	$(THREADS) $(BIN)/python scripts/show_fit_budget.py $(ARGS)

# The same number of threads for all systems: BLAS, XGBoost, treecf's Rust. QUICK=1 takes five minutes, ARGS="..." the rest.
BENCH_THREADS ?= 1
BENCH := OMP_NUM_THREADS=$(BENCH_THREADS) OPENBLAS_NUM_THREADS=$(BENCH_THREADS) RAYON_NUM_THREADS=$(BENCH_THREADS) $(BIN)/python -m

bench: $(VENV)/.dev  ## compare with every rival, each in its own venv: benchmarks/.work/bench/report.html
	$(BENCH) benchmarks.bench $(if $(QUICK),--quick) $(ARGS)

bench-paper: $(VENV)/.dev  ## repeat the paper's experiments: benchmarks/.work/paper/report.html; QUICK=1 takes minutes
	$(BENCH) benchmarks.paper $(if $(QUICK),--quick) $(ARGS)

bench-publish: $(VENV)/.dev  ## copy the report of `make bench` to benchmarks/results, its table and pictures to README and docs
	$(BENCH) benchmarks.publish $(ARGS)

bench-quality: $(VENV)/.dev  ## compare the search with exact optima and with itself, and time it: benchmarks/results/quality.md
	$(BENCH) benchmarks.quality $(if $(QUICK),--quick) $(ARGS)

bench-realism: $(VENV)/.dev  ## compare the method realistic with NICE: benchmarks/results/realism.md
	$(BENCH) benchmarks.realism $(ARGS)

bench-scale: $(VENV)/.dev  ## measure how cost grows with rows and columns: benchmarks/results/scale.md
	$(BENCH) benchmarks.scale $(ARGS)

bench-memory: $(VENV)/.dev  ## measure peak memory for files of growing length: benchmarks/results/memory.md
	$(BENCH) benchmarks.memory $(ARGS)

bench-serve: $(VENV)/.dev  ## measure the service under load and faults, into benchmarks/results/serve.md and docs/serve.md; ARGS="--soak 600"
	$(BENCH) benchmarks.load $(if $(QUICK),--quick) $(ARGS)

fuzz: $(VENV)/.dev  ## send ten thousand requests made from the service's OpenAPI description; fails on a server error
	$(THREADS) $(BIN)/python scripts/fuzz.py $(ARGS)

bench-batch: $(VENV)/.dev  ## measure batch runs here and on Ray, rows/s and memory: benchmarks/results/batch.md
	$(BENCH) benchmarks.batch $(ARGS)

test-spark: $(VENV)-spark/.ready  ## test batch runs on a local Spark; needs Java
	$(THREADS) $(VENV)-spark/bin/pytest tests/batch/test_spark.py -q

test-clients: $(VENV)/.dev $(VENV)-clients/.ready  ## test the service with the clients of Triton, MLServer and KServe
	$(THREADS) FASTERCE_CLIENTS=$(CURDIR)/$(VENV)-clients/bin/python $(BIN)/pytest tests/serve/test_service_clients.py -q

test-examples: $(VENV)/.dev kernels  ## run the notebooks in examples/
	$(THREADS) $(BIN)/python scripts/examples.py check

# The theme's announcement of its successor is not about our pages.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

docs: $(VENV)/.dev  ## build the documentation site; open site/index.html
	$(MKDOCS) build --strict

docs-serve: $(VENV)/.dev  ## show the site on http://127.0.0.1:8000 and rebuild it while you write
	$(MKDOCS) serve --strict

pictures: $(VENV)/.dev  ## renew the pictures of the documentation and the output of its examples
	$(THREADS) $(BIN)/python scripts/make_pictures.py

datasets: $(VENV)/.dev  ## rebuild the bundled datasets from their sources
	$(BIN)/python scripts/build_datasets.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(SOURCES) | $(VENV)/bin/python
	$(PIP) -e '.[cli]'
	touch $@

$(VENV)/.serve: $(SOURCES) | $(VENV)/bin/python
	$(PIP) -e '.[cli,serve]'
	touch $@

# PyTorch first: installed alone, it can come from an index of its own.
$(VENV)/.dev: $(SOURCES) | $(VENV)/bin/python
	$(PIP) $(TORCH)
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.demo $(VENV)/.serve

# Neither pins: these venvs have the lowest declared and the newest published versions.
$(VENV)-lowest/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/$(PIP_INSTALL) uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct -e '.[test]'
	touch $@

$(VENV)-latest/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-latest
	$(VENV)-latest/bin/$(PIP_INSTALL) --upgrade -e '.[test]'
	touch $@

$(VENV)-spark/.ready: $(SOURCES)
	$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/$(PIP_INSTALL) -c constraints.txt -e '.[spark,cli]' pytest hypothesis
	touch $@

# Without the constraints: these pin other versions of what we use.
$(VENV)-clients/.ready:
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check 'tritonclient[http]' mlserver kserve
	touch $@

clean:  ## remove the venvs, caches and what was built
	rm -rf $(VENV) $(VENV)-spark $(VENV)-lowest $(VENV)-latest $(VENV)-clients build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
