# On a fresh machine (Python 3.11 or newer, git, make): `make demo` and `make test` do everything, the venv included.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCES := pyproject.toml constraints.txt

.PHONY: demo demo-serve test lint types contracts unit postgres chromium test-spark fuzz show show-rules
.PHONY: bench bench-publish bench-scale bench-memory bench-serve bench-batch datasets docs docs-serve pictures clean

demo: $(VENV)/.demo  ## explain a few people of the Adult data, write demo.html
	$(BIN)/python -m fasterce.demo

test: lint types contracts unit  ## everything CI runs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev postgres chromium
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

postgres:  ## the programs the tests of the store need, if they can be installed
	scripts/install_postgres.sh

demo-serve: $(VENV)/.serve  ## the service and its page on two bundled datasets, http://127.0.0.1:8000
	$(BIN)/python -m fasterce.serve.demo $(ARGS)

chromium:  ## the browser the tests of the page need, if it can be installed
	scripts/install_chromium.sh

show: $(VENV)/.dev  ## the table of docs/variants.md: three datasets, three variants
	$(BIN)/python scripts/show.py

show-rules: $(VENV)/.dev  ## the table of docs/constraints.md: rules, options, robustness on three datasets
	$(BIN)/python scripts/show_rules.py

# The same number of threads for everyone: BLAS, XGBoost, treecf's Rust. QUICK=1 takes five minutes, ARGS="..." the rest.
BENCH_THREADS ?= 1
BENCH := OMP_NUM_THREADS=$(BENCH_THREADS) OPENBLAS_NUM_THREADS=$(BENCH_THREADS) RAYON_NUM_THREADS=$(BENCH_THREADS) $(BIN)/python -m

bench: $(VENV)/.dev  ## beside every rival, each in its own venv: benchmarks/.work/bench/report.html
	$(BENCH) benchmarks.bench $(if $(QUICK),--quick) $(ARGS)

bench-publish: $(VENV)/.dev  ## a run's report to benchmarks/results/bench, its short table and pictures to README and docs
	$(BENCH) benchmarks.publish $(ARGS)

bench-scale: $(VENV)/.dev  ## how cost grows with rows and columns: benchmarks/results/scale.md
	$(BENCH) benchmarks.scale $(ARGS)

bench-memory: $(VENV)/.dev  ## peak memory of files of growing length: benchmarks/results/memory.md
	$(BENCH) benchmarks.memory $(ARGS)

bench-serve: $(VENV)/.dev  ## the service under load, faults and time: benchmarks/results/serve.md; ARGS="--soak 600", "--quick"
	$(BENCH) benchmarks.load $(if $(QUICK),--quick) $(ARGS)

fuzz: $(VENV)/.dev  ## ten thousand requests made from the service's own OpenAPI description, no server error
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/fuzz.py $(ARGS)

bench-batch: $(VENV)/.dev  ## rows a second of workers here and on Ray, memory of long batches: benchmarks/results/batch.md
	$(BENCH) benchmarks.batch $(ARGS)

test-spark: $(VENV)-spark/.ready  ## the batch function on a local Spark; needs Java, its own venv, not part of `test`
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-spark/bin/pytest tests/batch/test_on_spark.py -q

# The theme's announcement of its successor is not about our pages.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

docs: $(VENV)/.dev  ## the documentation site, into site/; open site/index.html
	$(MKDOCS) build --strict

docs-serve: $(VENV)/.dev  ## the same on this machine's port 8000, renewed while you write
	$(MKDOCS) serve --strict

pictures: $(VENV)/.dev  ## redraw the pictures of the documentation, and renew what its examples print
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/make_pictures.py

datasets: $(VENV)/.dev  ## rebuild the bundled Parquet files from their sources
	$(BIN)/python scripts/build_datasets.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned: resolved beside the others, an unpinned one brings gigabytes of CUDA packages.
$(VENV)/.demo: $(SOURCES) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) -e '.[demo]'
	touch $@

$(VENV)/.serve: $(SOURCES) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) -e '.[demo,serve]'
	touch $@

$(VENV)/.dev: $(SOURCES) | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.demo $(VENV)/.serve

$(VENV)-spark/.ready: $(SOURCES)
	$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(VENV)-spark/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark,train,cli]' \
		pytest hypothesis
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-spark build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
