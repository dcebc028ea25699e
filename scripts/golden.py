"""Record the counterfactuals of fixed queries, and compare two commits.

The golden file holds typed values, status, distance and rank for the bundled datasets x {MLP, XGBoost, random forest} x
seven kinds of call, 50 queries each. A refactoring must reproduce it exactly on the same machine with the same versions.

    python scripts/golden.py record --out golden.json.gz             # the package on sys.path
    python scripts/golden.py compare golden.json.gz                  # the same against a recorded file
    python scripts/golden.py commits main~5 main                     # two commits, each in a worktree of its own

`--datasets german_credit` limits the run; floats are stored exactly (`float.hex`).
"""

import argparse
import gzip
import inspect
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from fasterce import FasterCE, datasets
from fasterce.constraints import OnlyUp

THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
DATASETS = ("german_credit", "lending_club", "adult")
QUERIES = 50
TRAINING_ROWS = 6_000
LIMITED = {
    "german_credit": {"duration": (4, 60), "credit_amount": (250, 12_000)},
    "lending_club": {"loan_amount": (1_000, 30_000), "total_credit_limit": (0, 500_000)},
    "adult": {"hours_per_week": (1, 60), "age": (17, 70)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("record", "compare", "commits"))
    parser.add_argument("names", nargs="*", help="compare: a golden file; commits: two revisions")
    parser.add_argument("--out", type=Path, default=Path("golden.json.gz"))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in THREADS.items()):
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=os.environ | THREADS, check=False).returncode)
    if arguments.command == "record":
        write(arguments.out, record(arguments.datasets))
    elif arguments.command == "compare":
        sys.exit(report(read(Path(arguments.names[0])), record(arguments.datasets)))
    else:
        first, second = (at_commit(name, arguments.datasets) for name in arguments.names)
        sys.exit(report(first, second))


def record(datasets: list[str]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    recorded = {}
    for dataset in datasets:
        for model in ("mlp", "xgboost", "forest"):
            recorded |= explained(dataset, model)
    return recorded


def explained(dataset: str, kind: str) -> dict[str, Any]:
    """One fitted explainer under every kind of call."""
    data = datasets.load(dataset)
    outcome = (data.y == data.wanted).astype(int)
    X_train, X_test, y_train, _ = train_test_split(data.X, outcome, test_size=0.2, random_state=0, stratify=outcome)
    X_train, y_train = X_train.iloc[:TRAINING_ROWS], y_train.iloc[:TRAINING_ROWS]
    rare = np.flatnonzero(y_train == y_train.value_counts().idxmin())
    fitted = np.concatenate([np.arange(len(y_train)), np.repeat(rare, max(len(y_train) // len(rare) // 3 - 1, 0))])
    model = black_box(kind).fit(X_train.iloc[fitted], y_train.iloc[fitted])
    explainer = FasterCE(model, data.schema, random_state=0, progress=False).fit(X_train)
    queries = pd.concat([X[model.predict(X) == 0] for X in (X_test, X_train)]).iloc[:QUERIES]
    renamed = "rules" if "rules" in inspect.signature(explainer.explain).parameters else "constraints"
    limited = LIMITED[dataset]
    constraints = {"permitted_range": limited, renamed: [OnlyUp(name) for name in limited]}
    calls: dict[str, dict[str, Any]] = {
        "closest": {"method": "closest"},
        "sparse": {"method": "sparse"},
        "realistic": {"method": "realistic"},
        "all": {"method": "all", "n": 3},
        "constraints": {"method": "closest", "n": 2, **constraints},
        "robust": {"method": "closest", "robust": 0.95},
        "paper": {"method": "all", "reading": "paper"},
    }
    found = {
        f"{dataset} {kind} {name}": plain(explainer.explain(queries, target=1, **options)) for name, options in calls.items()
    }
    print(f"{dataset} {kind}: {sum(len(one['counterfactuals']) for one in found.values())} counterfactuals", file=sys.stderr)
    return found


def black_box(kind: str) -> Any:
    numbers = (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number"))
    categories = (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number"))
    models = {
        "mlp": MLPClassifier((32, 16), max_iter=60, random_state=0),
        "xgboost": XGBClassifier(n_estimators=60, max_depth=4, random_state=0, n_jobs=1),
        "forest": RandomForestClassifier(60, min_samples_leaf=3, random_state=0, n_jobs=1),
    }
    return make_pipeline(make_column_transformer(numbers, categories), models[kind])


def plain(result: Any) -> dict[str, Any]:
    frame = result.to_frame()
    columns = list(result.rows.columns)
    lines = []
    for line in frame.to_dict("records"):
        values = {name: line[name] for name in line["changed"]}
        assert set(values) <= set(columns)
        position = result.rows.index.get_loc(line["query"])
        values = {name: exact(value) for name, value in values.items()}
        lines.append([position, line["rank"], line["method"], exact(line["distance"]), values])
    return {"status": list(result.status), "counterfactuals": lines}


def exact(value: Any) -> Any:
    """A value with its type, floats as hexadecimal text."""
    value = value.item() if hasattr(value, "item") else value
    return value.hex() if isinstance(value, float) else value


def at_commit(revision: str, datasets: list[str]) -> dict[str, Any]:
    """Record with the package of another commit, in a worktree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree, out = Path(folder, "tree"), Path(folder, "golden.json.gz")
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", tree, revision], check=True)
        try:
            command = [sys.executable, Path(__file__).resolve(), "record", "--out", out, "--datasets", *datasets]
            subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tree / "src")}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True)
        return read(out)


def report(expected: dict[str, Any], received: dict[str, Any]) -> int:
    """Print what differs; 1 if anything does."""
    cells = [name for name in expected if name in received]
    different = [name for name in cells if json.dumps(expected[name]) != json.dumps(received[name])]
    for name in different:
        before, after = expected[name], received[name]
        status = sum(a != b for a, b in zip(before["status"], after["status"], strict=True))
        pairs = [json.dumps(one) for one in before["counterfactuals"]], [json.dumps(one) for one in after["counterfactuals"]]
        print(f"{name}: {status} statuses, {len(set(pairs[0]) ^ set(pairs[1]))} counterfactuals differ")
    print(f"{len(cells) - len(different)} of {len(cells)} cells identical")
    return 1 if different or not cells else 0


def write(path: Path, recorded: dict[str, Any]) -> None:
    path.write_bytes(gzip.compress(json.dumps(recorded, separators=(",", ":")).encode(), mtime=0))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


if __name__ == "__main__":
    main()
