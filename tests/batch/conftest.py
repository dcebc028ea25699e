"""An artifact, and a folder of files of rows: some to be explained, some that cannot be read."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fasterce import FasterCE, Schema, batch
from fasterce.batch import local, ray
from fasterce.config import Config
from tests.batch.models import Grants

MODEL = "tests.batch.models:grants"
# Read when Ray is first imported: clusters of these tests listen on this machine alone.
os.environ.setdefault(ray.LOOPBACK, "0")


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "customer": [f"c{seed}-{k:04d}" for k in range(rows)],
            "age": rng.integers(18, 80, rows),
            "pay": rng.normal(50, 15, rows).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "region": rng.choice(["north", "south", "été/1"], rows),
        }
    )


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch") / "shop.fasterce"
    train = people(300, 0)[["age", "pay", "debt", "job"]]
    schema = Schema.infer(train, immutable=["age"])
    FasterCE(Grants(), schema, compile="never", progress=False, config=Config.fast()).fit(train).save(folder)
    return folder


@pytest.fixture(scope="session")
def rows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Parquet files of 130, 70 and 50 rows, in row groups of 40; three rows have no pay."""
    folder = tmp_path_factory.mktemp("rows")
    for name, rows, seed in (("a", 130, 1), ("b", 70, 2), ("c", 50, 3)):
        frame = people(rows, seed)
        frame.loc[7, "pay"] = np.nan
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / f"{name}.parquet", row_group_size=40)
    return folder


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PATIENCE", 0.02)


@pytest.fixture
def explain(artifact: Path, rows_folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """`batch.explain` with small shards, into a new folder unless told otherwise."""

    def run(source: Any = None, output: Any = None, **more: Any) -> batch.BatchReport:
        given = {"model": MODEL, "shard_rows": 50, "batch_rows": 20, "workers": 1, "id_column": "customer", **more}
        target = tmp_path / "out" if output is None else output
        return batch.explain(artifact, rows_folder / "*.parquet" if source is None else source, target, **given)

    return run


def digests(folder: Path) -> dict[str, str]:
    """Every data file by its name and the SHA-256 of its bytes."""
    import hashlib

    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("part-*.parquet"))
    }


def whole(folder: Path) -> pd.DataFrame:
    """All lines as anyone reads such a folder."""
    return pq.read_table(folder).to_pandas().sort_values(["row", "rank"], ignore_index=True)
