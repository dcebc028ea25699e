"""Rows with dates and with columns that are no features, from the description of an explainer to its table."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.records import Wording
from fasterce.serve.api.problems import FieldsProblem
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.workers.convert import RowReader, explain_arguments
from fasterce.serve.workers.describe import schema_body


def predict(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["start"] < pd.Timestamp("2020-06-01"), "early", "late")


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), unit="D")
    frame = pd.DataFrame({"start": start, "pay": rng.uniform(0, 9, 200).round(1), "code": [f"k{k}" for k in range(200)]})
    return FasterCE(predict, Schema.infer(frame, passthrough=["code"]), config=Config.fast(), progress=False).fit(frame)


@pytest.fixture(scope="module")
def body(explainer: FasterCE) -> dict[str, Any]:
    return schema_body(explainer, "m", "M", None, Wording())


def test_a_date_is_described_as_text(body: dict[str, Any]) -> None:
    start = body["features"][0]
    assert (start["kind"], start["type"]) == ("time", "date")
    assert "2019-01-01" <= start["low"] < start["typical"] < start["high"] <= "2021-12-31"
    assert body["passthrough"] == [{"name": "code", "required": False}]


def test_rows_with_dates_are_checked_and_explained(explainer: FasterCE, body: dict[str, Any]) -> None:
    validator = RowValidator(SimpleNamespace(name="m", schema=body))  # type: ignore[arg-type]
    row = {"start": "2019-05-01", "pay": 3.0, "code": "k1"}
    validator.check([row])
    with pytest.raises(FieldsProblem):
        validator.check([row | {"start": 18000}])
    with pytest.raises(FieldsProblem):
        validator.check([row | {"start": "01.05.2019"}])
    with pytest.raises(FieldsProblem):
        validator.check([row | {"cod": "k1"}])
    assert validator.json_schema()["properties"]["start"] == {"title": "Start", "type": "string", "format": "date"}
    reader = RowReader(explainer.state_.table)
    reader.check([row])
    options = explain_arguments(explainer, {"ranges": {"start": ["2019-01-01", None]}})
    result = explainer.explain(reader.frame([row, {"start": "2020-13-01", "pay": 1.0}], [0, 1]), **options)
    assert result.status.tolist() == ["found", "invalid_input"]
    assert predict(result.counterfactuals.head(1).astype({"start": "datetime64[us]"}))[0] == "late"
    assert result.counterfactuals["code"].iloc[0] == "k1"
