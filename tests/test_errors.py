"""What a user catches, and what the text about a wrong name says."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from fasterce import errors
from fasterce.errors import FasterCEError, InputError, MissingExtraError, Problem, make_problem, shorten, unknown


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
    raised = [kind for kind in named if isinstance(kind, type) and issubclass(kind, Exception)]
    own = [kind for kind in raised if kind.__module__ == "fasterce.errors"]
    assert len(own) >= 7
    assert all(issubclass(kind, FasterCEError) for kind in own)


def test_a_missing_extra_says_what_for_and_how_to_get_it() -> None:
    message = str(MissingExtraError("torch", "torch", "A PyTorch model"))
    assert message == 'A PyTorch model needs torch, which is not installed; expected: pip install "fasterce[torch]".'


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    message = unknown("data.unknown_column", "incmoe", ["age", "income", "job"])
    assert str(message) == "Unknown column 'incmoe'; expected one of 'age', 'income', 'job'. Did you mean 'income'?"


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert "Did you mean" not in str(unknown("data.unknown_column", "zzzzzz", ["age", "income"]))


def test_names_that_are_no_text_are_compared_too() -> None:
    assert str(unknown("data.unknown_column", 10, [100, 7])).startswith("Unknown column 10; expected one of ")


def test_a_long_list_is_cut_and_counted() -> None:
    assert shorten(["a", "b"]) == "'a', 'b'"
    assert shorten(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert shorten(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"
    assert shorten(iter("abc"), most=2) == "'a', 'b', … (3 in all)"


INNER = make_problem("options.not_a_count", option="budget", expected=1, received=0)
OUTER = make_problem("fitting.unusable_rows", option="X", count=2, first=INNER)


def test_a_problem_is_shown_by_the_names_of_the_surface() -> None:
    assert str(OUTER) == ("X has 2 rows that cannot be used; the first: budget must be a whole number of at least 1; got 0.")
    shown = OUTER.text(names={"X": "--data", "budget": "--budget"}, with_received=False)
    assert shown.startswith(
        "--data has 2 rows that cannot be used; the first: --budget must be a whole number of at least 1;"
    )
    assert shown.endswith("; got another value.")


def test_a_problem_without_a_fitting_text_still_shows_what_it_is() -> None:
    assert (
        str(Problem("nowhere.to_be_found", received=3))
        == "nowhere.to_be_found: {'code': 'nowhere.to_be_found', 'received': 3}."
    )
    assert str(Problem("fitting.unusable_rows", option="X")).startswith("fitting.unusable_rows: ")


def test_a_problem_is_the_same_after_json_and_pickle() -> None:
    problem = make_problem("options.not_a_count", option="n", expected=np.int64(1), received=np.float64(0.5), inner=[INNER])
    assert problem.to_dict()["received"] == 0.5
    assert Problem.from_dict(problem.to_dict()) == make_problem(
        "options.not_a_count", option="n", expected=1, received=0.5, inner=[INNER]
    )
    assert pickle.loads(pickle.dumps(InputError(OUTER))).problem == OUTER
    assert len({OUTER, OUTER, INNER}) == 2
