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
.PHONY: help demo demo-serve test test-lowest test-latest test-wheel sizes lint types contracts security audit lock unit coverage
.PHONY: postgres chromium test-spark test-clients fuzz show show-constraints show-fit-budget
.PHONY: bench bench-publish bench-quality bench-scale bench-memory bench-serve bench-batch datasets docs docs-serve pictures clean

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  %-17s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## explain a few people of the Adult data, write demo.html
	$(BIN)/python -m fasterce.cli.adult_demo

test: lint types contracts security unit  ## everything CI runs

lint: $(VENV)/.dev  ## ruff: rules and format; names and phrases the project has retired
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/lint_vocabulary.py

types: $(VENV)/.dev  ## mypy, over src and tests
	$(BIN)/mypy

contracts: $(VENV)/.dev  ## which module may import which
	$(BIN)/lint-imports

security: $(VENV)/.dev  ## bandit: calls that are often unsafe
	$(BIN)/bandit --quiet --recursive --severity-level medium --configfile pyproject.toml src

# Needs the internet, so it is not part of `test`; CI runs it beside.
audit: $(VENV)/.dev  ## pip-audit: known vulnerabilities of what the image installs
	$(BIN)/pip-audit --strict --require-hashes --disable-pip $(foreach lock,$(wildcard deploy/*.lock),--requirement $(lock))

lock: $(VENV)/.dev  ## renew deploy/*.lock: what the image installs, with hashes
	scripts/lock.sh

kernels: $(VENV)/.dev  ## compile the loops of the search, once after a change of them
	$(THREADS) $(BIN)/python -m fasterce.kernels.warm_up

unit: $(VENV)/.dev kernels postgres chromium  ## the tests
	$(PYTEST)

# Tracing every line costs two fifths of the time on Python 3.11, so it is not part of `test`; CI runs it beside.
coverage: $(VENV)/.dev kernels postgres chromium  ## the tests, failing below the floor of coverage in pyproject.toml
	$(PYTEST) --cov --cov-report=term:skip-covered

# What depends on the versions of other libraries: tables, models, training, files, the command line and the service.
VERSION_TESTS := tests/test_imports.py tests/test_explainer.py tests/test_guarantees.py tests/data tests/latent tests/surrogate tests/artifact \
	tests/integrations/test_sklearn.py tests/integrations/test_sklearn_checks.py tests/models/adapters \
	tests/models/compiled/test_build.py tests/models/compiled/test_session.py tests/cli/test_path.py tests/serve/test_service_same.py

test-lowest: $(VENV)-lowest/.ready  ## a part of the tests with the lowest declared version of every dependency
	$(THREADS) $(VENV)-lowest/bin/pytest -q -n 2 --dist worksteal $(VERSION_TESTS)

test-latest: $(VENV)-latest/.ready  ## the same with the newest version of every dependency
	$(THREADS) $(VENV)-latest/bin/pytest -q -n 2 --dist worksteal $(VERSION_TESTS)

test-wheel: $(VENV)/.dev  ## build the wheel, install it outside the clone, and follow docs/getting-started.md there
	$(BIN)/pytest -q -m wheel tests/test_wheel.py

sizes: $(VENV)/.dev  ## sizes and install times of the package and its extras, into docs/installation.md
	$(BIN)/python scripts/measure_sizes.py

postgres:  ## install PostgreSQL for the tests of the store, if possible
	scripts/install_postgres.sh

demo-serve: $(VENV)/.serve  ## the service and its page on two bundled datasets, http://127.0.0.1:8000
	$(BIN)/python scripts/serve_demo.py $(ARGS)

chromium:  ## install a browser for the tests of the page, if possible
	scripts/install_chromium.sh

show: $(VENV)/.dev  ## the table of docs/variants.md: three datasets, three methods
	$(BIN)/python scripts/show.py

show-constraints: $(VENV)/.dev  ## the tables of docs/measured.md: constraints, options, robustness on three datasets
	$(BIN)/python scripts/show_constraints.py

show-fit-budget: $(VENV)/.dev  ## the table of docs/performance.md: quality against max_fit_rows on three datasets
	$(THREADS) $(BIN)/python scripts/show_fit_budget.py $(ARGS)

# The same number of threads for everyone: BLAS, XGBoost, treecf's Rust. QUICK=1 takes five minutes, ARGS="..." the rest.
BENCH_THREADS ?= 1
BENCH := OMP_NUM_THREADS=$(BENCH_THREADS) OPENBLAS_NUM_THREADS=$(BENCH_THREADS) RAYON_NUM_THREADS=$(BENCH_THREADS) $(BIN)/python -m

bench: $(VENV)/.dev  ## beside every rival, each in its own venv: benchmarks/.work/bench/report.html
	$(BENCH) benchmarks.bench $(if $(QUICK),--quick) $(ARGS)

bench-publish: $(VENV)/.dev  ## a run's report to benchmarks/results/bench, its short table and pictures to README and docs
	$(BENCH) benchmarks.publish $(ARGS)

bench-quality: $(VENV)/.dev  ## the search against exact optima, itself and the clock: benchmarks/results/quality.md
	$(BENCH) benchmarks.quality $(if $(QUICK),--quick) $(ARGS)

bench-scale: $(VENV)/.dev  ## how cost grows with rows and columns: benchmarks/results/scale.md
	$(BENCH) benchmarks.scale $(ARGS)

bench-memory: $(VENV)/.dev  ## peak memory of files of growing length: benchmarks/results/memory.md
	$(BENCH) benchmarks.memory $(ARGS)

bench-serve: $(VENV)/.dev  ## the service under load, faults and time: benchmarks/results/serve.md; ARGS="--soak 600", "--quick"
	$(BENCH) benchmarks.load $(if $(QUICK),--quick) $(ARGS)

fuzz: $(VENV)/.dev  ## ten thousand requests made from the service's own OpenAPI description, no server error
	$(THREADS) $(BIN)/python scripts/fuzz.py $(ARGS)

bench-batch: $(VENV)/.dev  ## rows per second of workers here and on Ray, memory of long batches: benchmarks/results/batch.md
	$(BENCH) benchmarks.batch $(ARGS)

test-spark: $(VENV)-spark/.ready  ## the batch function on a local Spark; needs Java, its own venv, not part of `test`
	$(THREADS) $(VENV)-spark/bin/pytest tests/batch/test_spark.py -q

test-clients: $(VENV)/.dev $(VENV)-clients/.ready  ## Triton's, MLServer's and KServe's clients against the service, from their own venv
	$(THREADS) FASTERCE_CLIENTS=$(CURDIR)/$(VENV)-clients/bin/python $(BIN)/pytest tests/serve/test_service_clients.py -q

# The theme's announcement of its successor is not about our pages.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

docs: $(VENV)/.dev  ## the documentation site, into site/; open site/index.html
	$(MKDOCS) build --strict

docs-serve: $(VENV)/.dev  ## the same on this machine's port 8000, rebuilt while you write
	$(MKDOCS) serve --strict

pictures: $(VENV)/.dev  ## redraw the pictures of the documentation, and renew what its examples print
	$(THREADS) $(BIN)/python scripts/make_pictures.py

datasets: $(VENV)/.dev  ## rebuild the bundled Parquet files from their sources
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

clean:
	rm -rf $(VENV) $(VENV)-spark $(VENV)-lowest $(VENV)-latest $(VENV)-clients build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
