"""Explainers fitted once for all tests of records."""

from typing import Any

import pytest

from fasterce import FasterCE
from tests.records.worlds import Bank, Grades, Limit, fitted, pipeline


@pytest.fixture(scope="session")
def bank() -> FasterCE:
    return fitted(Bank())


@pytest.fixture(scope="session")
def real() -> FasterCE:
    """A scikit-learn pipeline, with a twin and a network of the explainer's own."""
    return fitted(pipeline(), autoencoder=None, latent_dim=4, compile="auto")


@pytest.fixture(scope="session")
def grades() -> FasterCE:
    return fitted(Grades())


@pytest.fixture(scope="session")
def limit() -> FasterCE:
    return fitted(Limit(), task="regression")


@pytest.fixture
def model_calls(bank: FasterCE) -> list[Any]:
    bank.model.calls.clear()
    return bank.model.calls
