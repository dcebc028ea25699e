"""Check rivals on a few rows: `python -m benchmarks.rivals.check dice-random nice-sparsity`, or all of them.

For adding a rival: whether it is installed, what it finds, whether that is valid, and how long it takes. This is no
benchmark.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import venvs
from benchmarks.measuring import table
from benchmarks.rivals import catalogue
from benchmarks.runner import environment
from benchmarks.setting import TARGET, Setting, prepare
from fasterce import metrics

HERE = Path(__file__).parent.parent
HEADER = ("system", "venv", "set-up s", "ms each", "model rows each", "found", "valid", "features", "gower_l1", "note")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals.check", description=__doc__)
    parser.add_argument("names", nargs="*", help="as in the catalogue, MODULE or MODULE-VARIANT; all by default")
    parser.add_argument("--data", default="german_credit")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--immutable", nargs="*", default=[], help="columns that must not change")
    parser.add_argument("--work", type=Path, default=HERE / ".work")
    options = parser.parse_args(arguments)
    setting = prepare(options.data, options.model, 0)
    folder = options.work / f"check-{options.data}-{options.model}"
    setting.dump(folder)
    spec = json.loads((folder / "spec.json").read_text())
    (folder / "spec.json").write_text(json.dumps(spec | {"immutable": options.immutable}))
    entries = [e for e in catalogue.ENTRIES if not options.names or {e.name, e.module} & set(options.names)]
    lines = [check(entry, setting, folder, options) for entry in entries if options.model in entry.models]
    print(table(HEADER, lines))


def check(entry: catalogue.Entry, setting: Setting, folder: Path, options: argparse.Namespace) -> list[str]:
    print(entry.title, file=sys.stderr, flush=True)
    out = folder / entry.name
    for kind in (".json", ".parquet", ".lines"):
        out.with_suffix(kind).unlink(missing_ok=True)
    try:
        python = venvs.python_of(entry.module)
    except venvs.CannotInstall as error:
        return [entry.title, *[""] * (len(HEADER) - 2), f"cannot be installed: {error}"]
    limits = ("--rows", str(options.rows), "--seconds", str(options.seconds))
    command = [python, "-m", "benchmarks.rivals.run", entry.module, entry.variant, str(folder), str(out), *limits]
    subprocess.run(command, cwd=HERE.parent, env=environment(), check=False)
    report = json.loads(out.with_suffix(".json").read_text())
    if "failure" in report:
        return [entry.title, environment_size(entry.module), *[""] * (len(HEADER) - 3), report["failure"].replace("\n", " ")]
    return [
        entry.title,
        environment_size(entry.module),
        *scored(report, pd.read_parquet(out.with_suffix(".parquet")), setting, options),
    ]


def environment_size(module: str) -> str:
    """Return the size of the environment on disk and the seconds its installation took."""
    folder = HERE / ".venvs" / module
    if not folder.exists():
        return "ours"
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    seconds = folder / "SECONDS"
    return f"{size / 1e6:.0f} MB, {seconds.read_text().strip() if seconds.exists() else '?'} s"


def scored(report: dict[str, Any], counterfactuals: pd.DataFrame, setting: Setting, options: argparse.Namespace) -> list[str]:
    usage, tried = report["usage"], len(report["seconds"])
    scale = metrics.Scale.of(setting.X_train, setting.schema)
    counterfactuals = counterfactuals[setting.X_train.columns].astype(setting.X_train.dtypes.to_dict())
    before = setting.rows.iloc[counterfactuals.index]
    valid = setting.model.predict(counterfactuals) == TARGET if len(counterfactuals) else np.zeros(0, bool)
    valid[list(scale.table.read(counterfactuals).problems) if len(counterfactuals) else []] = False
    frozen = [int((counterfactuals[name].to_numpy() != before[name].to_numpy()).sum()) for name in options.immutable]
    notes = [f"{tried} rows", *report["notes"], *report["errors"][:2]]
    notes += [f"{sum(frozen)} immutable values changed"] if options.immutable else []
    quality = ["", ""]
    if valid.any():
        changed = metrics.features_changed(scale, before[valid], counterfactuals[valid])
        quality = [f"{changed.mean():.2f}", f"{metrics.gower_l1(scale, before[valid], counterfactuals[valid]).mean():.3f}"]
    return [
        f"{report['fit']:.1f}",
        f"{1000 * np.mean(report['seconds']):.1f}",
        f"{usage['rows'] / tried:.0f} in {usage['calls'] / tried:.0f}",
        f"{counterfactuals.index.nunique()}/{tried}",
        f"{valid.sum()}/{tried}",
        *quality,
        "; ".join(notes).replace("|", "/").replace("\n", " "),
    ]


if __name__ == "__main__":
    main()
