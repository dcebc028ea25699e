"""Distances relative to the nearest known, by hand."""

import numpy as np
import pandas as pd
import pytest
from benchmarks import figures, relative

NAN = float("nan")


def lines(method: str, distance: list[float], seconds: float, model: str = "mlp", proven: float = NAN) -> pd.DataFrame:
    valid = [float(np.isfinite(value)) for value in distance]
    rows = {"data": "adult", "model": model, "method": method, "seed": 0, "row": range(len(distance)), "status": "found"}
    return pd.DataFrame({**rows, "valid": valid, "gower_l1": distance, "seconds": seconds, "proven": proven})


NEAR = lines("near", [0.1, 0.2, 0.4], 0.01)
FAR = lines("far", [0.2, NAN, 0.3], 0.1)
EXACT = lines("exact", [0.1, 0.1], 1.0, proven=1.0)
ALL = pd.concat([NEAR, FAR, EXACT], ignore_index=True)


def test_the_reference_is_the_nearest_valid_counterfactual_of_all() -> None:
    found = relative.with_reference(ALL, "gower_l1")
    assert found.loc[found["method"] == "near", "reference"].tolist() == [0.1, 0.1, 0.3]
    assert found.loc[found["method"] == "near", "optimal"].tolist() == [1, 1, 0]


def test_ratios_are_of_means_over_the_queries_a_system_explains() -> None:
    table = relative.table(relative.cells(ALL))
    assert table.loc["near", "ratio"] == pytest.approx(0.7 / 0.5)
    assert table.loc["far", "ratio"] == pytest.approx(0.5 / 0.4)
    assert table.loc["near", "to_optimum"] == pytest.approx(0.3 / 0.2)
    assert table.loc["far", "valid"] == pytest.approx(200 / 3)
    assert table.loc["exact", ["ratio", "low", "high", "queries"]].tolist() == [1, 1, 1, 2]
    assert table.loc["near", "low"] <= table.loc["near", "ratio"] <= table.loc["near", "high"]


def test_black_boxes_count_alike() -> None:
    """Twice as far on one black box and as near on another: the geometric mean of both."""
    other = [lines("near", [0.1] * 9, 0.01, "xgboost"), lines("far", [0.1] * 9, 0.4, "xgboost")]
    both = pd.concat([lines("near", [0.1], 0.01), lines("far", [0.2], 0.1), *other], ignore_index=True)
    table = relative.table(relative.cells(both))
    assert table.loc["far", "ratio"] == pytest.approx(2**0.5)
    assert table.loc["far", "ms"] == pytest.approx(200)
    assert table.loc["far", "cells"] == 2


def test_a_proof_is_of_one_distance_only() -> None:
    other = ALL.assign(euclidean=ALL["gower_l1"])
    assert relative.with_reference(other, "euclidean")["optimal"].eq(0).all()


def test_proofs_are_counted_by_black_box() -> None:
    unproven = lines("exact", [0.1, 0.1, 0.1], 1.0, "xgboost", proven=0.0)
    assert relative.proven(pd.concat([ALL, unproven])) == {"mlp": (2, 2), "xgboost": (0, 3)}


def test_rows_never_begun_do_not_count() -> None:
    late = FAR.assign(status=["found", "not_tried", "not_tried"], gower_l1=[0.2, NAN, NAN], valid=[1.0, 0.0, 0.0])
    table = relative.table(relative.cells(pd.concat([NEAR, late], ignore_index=True)))
    assert table.loc["far", ["queries", "valid"]].tolist() == [1, 100]


def test_the_picture_names_systems_or_numbers_them() -> None:
    points = relative.table(relative.cells(ALL))
    points = points.assign(title=points.index, ours=False, exact=False, all_datasets=[True, False, True])
    figure = figures.near_and_fast([("gower_l1", points)], "How near")
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert texts == ["1", "near", "exact", " 1  far"]
