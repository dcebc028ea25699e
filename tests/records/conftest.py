"""Explainers fitted once for all tests of records."""

from collections.abc import Iterator
from typing import Any

import pytest

from fasterce import FasterCE
from fasterce.surrogate import train
from records.worlds import LITTLE_TRAINED, Bank, Grades, Limit, fitted, pipeline


@pytest.fixture(scope="session", autouse=True)
def _a_poor_copy() -> Iterator[None]:
    """Nothing here rests on how well the model was distilled."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LITTLE_TRAINED.items():
            patch.setattr(train, name, value)
        yield


@pytest.fixture(scope="session")
def bank() -> FasterCE:
    return fitted(Bank())


@pytest.fixture(scope="session")
def real() -> FasterCE:
    """A scikit-learn pipeline, with a twin and a network of the explainer's own."""
    return fitted(pipeline(), autoencoder=None, latent_dim=4, twin="auto")


@pytest.fixture(scope="session")
def grades() -> FasterCE:
    return fitted(Grades())


@pytest.fixture(scope="session")
def limit() -> FasterCE:
    return fitted(Limit(), task="regression")


@pytest.fixture
def asked(bank: FasterCE) -> list[Any]:
    bank.model.calls.clear()
    return bank.model.calls
