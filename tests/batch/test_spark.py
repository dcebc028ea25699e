"""The same lines on Spark, `make test-spark`: it needs Java and a large package, and is passed over where there are none."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fasterce import batch
from fasterce.errors import InputError
from tests.batch.conftest import MODEL, people, whole

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
        patched.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        made = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "17")
            .getOrCreate()
        )
        yield made
        made.stop()


def test_lines_are_those_of_a_batch(spark: Any, artifact: Path, tmp_path: Path) -> None:
    from fasterce.batch.spark import explain_frame

    rows = people(90, 4)
    rows.loc[5, "job"] = "baker"
    rows.to_parquet(tmp_path / "rows.parquet")
    given: dict[str, Any] = {
        "model": MODEL,
        "where": "prediction = 'refused' and age > 20",
        "id_column": "customer",
        "keep": ["region"],
    }
    options = {"n": 2, "target": "granted"}
    batch.explain(artifact, tmp_path / "rows.parquet", tmp_path / "out", workers=0, options=options, **given)
    frame = spark.createDataFrame(rows).repartition(3)
    found = explain_frame(frame, artifact, options=options, batch_rows=20, **given).toPandas()
    expected = whole(tmp_path / "out").drop(columns="row").sort_values(["id", "rank"], ignore_index=True)
    found = found.sort_values(["id", "rank"], ignore_index=True)
    assert list(found.columns) == list(expected.columns)
    assert set(found["status"]) == {"found", "invalid_input"}
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_what_is_missing_is_reported_before_spark_begins(spark: Any, artifact: Path) -> None:
    from fasterce.batch.spark import explain_frame

    frame = spark.createDataFrame(people(5, 4))
    with pytest.raises(InputError, match="missing 'debt'"):
        explain_frame(frame.drop("debt"), artifact, model=MODEL)
    with pytest.raises(InputError, match="Unknown column 'custmer'"):
        explain_frame(frame, artifact, model=MODEL, id_column="custmer")
    with pytest.raises(InputError, match="Unknown option"):
        explain_frame(frame, artifact, model=MODEL, options={"m": 1})
