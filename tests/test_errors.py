"""What a user catches, and what a sentence about a wrong name says."""

import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from fasterce import errors
from fasterce.errors import FasterCEError, MissingExtraError, shorten, unknown_name


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        (errors.InputError, ValueError),
        (errors.SchemaError, errors.InputError),
        (errors.ModelError, RuntimeError),
        (errors.NotFittedError, SklearnNotFittedError),
        (errors.MissingExtraError, ImportError),
    ],
)
def test_errors_can_be_caught_as_the_builtin_a_user_expects(raised: type[Exception], caught: type[Exception]) -> None:
    assert issubclass(raised, caught)


def test_everything_raised_on_purpose_has_one_parent() -> None:
    named = [getattr(errors, name) for name in dir(errors)]
    own = [kind for kind in named if isinstance(kind, type) and kind.__module__ == "fasterce.errors"]
    assert len(own) >= 7
    assert all(issubclass(kind, FasterCEError) for kind in own)


def test_a_missing_extra_says_what_for_and_how_to_get_it() -> None:
    message = str(MissingExtraError("torch", "train", "Training an autoencoder"))
    assert message == 'Training an autoencoder needs torch, which is not installed; expected: pip install "fasterce[train]".'


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    message = unknown_name("column", "incmoe", ["age", "income", "job"])
    assert message == "Unknown column 'incmoe'; expected one of 'age', 'income', 'job'. Did you mean 'income'?"


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert "Did you mean" not in unknown_name("column", "zzzzzz", ["age", "income"])


def test_names_that_are_no_text_are_compared_too() -> None:
    assert unknown_name("column", 10, [100, 7]).startswith("Unknown column 10; expected one of ")


def test_a_long_list_is_cut_and_counted() -> None:
    assert shorten(["a", "b"]) == "'a', 'b'"
    assert shorten(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert shorten(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"
    assert shorten(iter("abc"), most=2) == "'a', 'b', … (3 in all)"
