"""Numbers wanted within narrow bounds: the way from one side to the other is cut until a point lies inside."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.constraints import Frozen

SAME = (lambda matrix: matrix, lambda latent: latent)


def rent(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(8 * frame["size"] + 3.7 * frame["rooms"] ** 2 - 2 * frame["far"] + 40 * (frame["kind"] == "new"))


@pytest.fixture(scope="module")
def flats() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.uniform(20, 120, 500).round(2),
            "rooms": rng.integers(1, 7, 500),
            "far": rng.uniform(0, 30, 500).round(2),
            "kind": rng.choice(["old", "new"], 500),
        }
    )


@pytest.fixture(scope="module")
def explainer(flats: pd.DataFrame) -> FasterCE:
    return FasterCE(rent, task="regression", autoencoder=SAME, progress=False).fit(flats)


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic"])
@pytest.mark.parametrize("target", [(500.0, 500.4), (220.0, 220.3), (900.0, 901.0)])
def test_every_row_gets_inside(explainer: FasterCE, flats: pd.DataFrame, method: Any, target: tuple[float, float]) -> None:
    result = explainer.explain(flats.head(30), method, target=target)
    found = result.status == "found"
    assert found.mean() >= 0.95
    said = rent(result.counterfactuals[found].astype(flats.dtypes.to_dict()))
    assert ((said >= target[0]) & (said <= target[1])).all()


def test_rules_hold_on_the_way(explainer: FasterCE, flats: pd.DataFrame) -> None:
    rows = flats.head(20)
    result = explainer.explain(rows, target=(500.0, 500.5), constraints=[Frozen("size", "kind")])
    found = result.counterfactuals[result.status == "found"]
    pd.testing.assert_frame_equal(found[["size", "kind"]], rows.loc[found.index, ["size", "kind"]], check_dtype=False)


def test_where_no_value_lies_inside_nothing_is_returned(flats: pd.DataFrame) -> None:
    stairs = FasterCE(lambda frame: np.floor(rent(frame) / 50) * 50, task="regression", autoencoder=SAME, progress=False)
    result = stairs.fit(flats).explain(flats.head(6), target=(510.0, 540.0))
    assert (result.status == "none_found").all()
    assert (result.reason != "").all()
