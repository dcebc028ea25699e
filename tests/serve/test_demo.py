"""What `make demo-serve` declares besides the bundled schemas."""

import pytest
from scripts.serve_demo import IN_THE_PERSONS_INTEREST

from fasterce import datasets


@pytest.mark.parametrize(
    ("column", "worse", "better"),
    [
        ("savings", "unknown or none", "below 100 DM"),
        ("savings", "500 to 1000 DM", "1000 DM or more"),
        ("property", "car or other", "real estate"),
        ("housing", "rent", "own"),
        ("existing_credits", 3, 1),
    ],
)
def test_losing_what_one_has_is_against_the_persons_interest(column: str, worse: object, better: object) -> None:
    data = datasets.load("german_credit")
    feature = data.schema.declare(IN_THE_PERSONS_INTEREST["german_credit"])[column]
    before, after = (float(v) if feature.numeric else feature.categories.index(v) for v in (better, worse))  # type: ignore[arg-type]
    assert feature.is_against(before, after)
    assert not feature.is_against(after, before)
    assert feature.numeric or set(feature.categories) == set(data.schema[column].categories)
