#!/bin/sh
# Write the lock files of the image: every package with its version and hashes, for Linux and any supported Python.
set -eu
cd "$(dirname "$0")/.."
UV=${UV:-.venv/bin/uv}

lock() {
    file=$1
    shift
    "$UV" pip compile --quiet --universal --generate-hashes --no-annotate --no-header --constraints constraints.txt \
        --output-file "deploy/$file" "$@"
}

lock requirements.lock pyproject.toml --extra serve --extra postgres
# XGBoost in its CPU build.
printf 'catboost\nlightgbm\nxgboost-cpu\n' | lock requirements-models.lock -
echo hatchling | lock requirements-build.lock -
