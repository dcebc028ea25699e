"""What the caller asked for, checked before anything is asked of the model."""

from typing import Any

import numpy as np
import pytest

from fasterce import options
from fasterce.errors import InputError
from fasterce.options import Wanted
from fasterce.search.verify import TRIES
from fasterce.targets import TheOther


class Trying:
    """A trial that asks about so many rows an answer."""

    def __init__(self, questions: int) -> None:
        self.questions = questions


def wanted(**given: Any) -> Wanted:
    usual: dict[str, Any] = {
        "method": "closest",
        "variants": [("closest", None)],
        "reading": None,
        "target": TheOther(),
        "rules": None,
        "distance": None,
        "n": 1,
        "diversity": 0.5,
        "step": 0.1,
        "margin": 0.0,
        "realism": 0.5,
        "budget": None,
        "deadline": None,
        "progress": False,
    }
    return Wanted(**usual | given)


def test_choosing_variants() -> None:
    movement, paper = (options.choose_reading(name) for name in ("movement", "paper"))
    assert [name for name, _ in options.choose_variants("sparse", movement)] == ["sparse"]
    assert [name for name, _ in options.choose_variants("all", paper)] == ["closest", "sparse", "realistic"]
    assert options.choose_variants("closest", movement) != options.choose_variants("closest", paper)
    with pytest.raises(InputError, match=r"Unknown method 'near'; expected one of 'closest', 'sparse', 'realistic', 'all'\."):
        options.choose_variants("near", movement)
    with pytest.raises(InputError, match=r"Unknown reading 'fast'"):
        options.choose_reading("fast")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"diversity": -0.1}, r"^diversity must be a number from 0 \(the cheapest\) to 1 .*; got -0\.1\.$"),
        ({"diversity": 2}, r"got 2\.$"),
        ({"diversity": True}, r"got True\.$"),
        ({"diversity": "very"}, r"got 'very'\.$"),
        ({"diversity": float("nan")}, r"got nan\.$"),
        ({"realism": float("nan")}, r"^realism must be .* got nan\.$"),
        ({"n": True}, r"^n must be a whole number of at least 1; got True\.$"),
        ({"n": 1.0}, r"got 1\.0\.$"),
        ({"n": None}, r"got None\.$"),
        ({"step": float("inf")}, r"^step must be a number of at least 1e-06; got inf\.$"),
        ({"margin": float("nan")}, r"^margin must be a number of at least 0; got nan\.$"),
        ({"margin": "0.1"}, r"got '0\.1'\.$"),
    ],
)
def test_what_cannot_be_wanted_is_one_clear_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        options.check(wanted(**given))


def test_what_is_checked_is_plain() -> None:
    checked = options.check(wanted(n=np.int64(2), realism=np.float32(0.25), diversity=1))
    assert (checked.n, checked.realism, checked.diversity) == (2, 0.25, 1.0)
    assert [type(value) for value in (checked.n, checked.realism, checked.diversity)] == [int, float, float]


def test_trials_are_questions_too() -> None:
    """Kept back: the row's own label, and for every answer the tries to confirm it and its trials."""
    assert wanted().set_aside == 1 + TRIES
    assert wanted(n=3, variants=[("a", None), ("b", None)]).set_aside == 1 + TRIES * 3 * 2
    assert wanted(trials=[Trying(33), Trying(0)]).set_aside == 1 + TRIES + 33
    least = 1 + (1 + TRIES + 33) + options.FEWEST_SEARCHED
    assert options.check(wanted(trials=[Trying(33)], budget=least)).budget == least
    with pytest.raises(InputError, match=rf"at least {least}; got {least - 1}\.$"):
        options.check(wanted(trials=[Trying(33)], budget=least - 1))


def test_limits_leave_room_for_the_last_word() -> None:
    limits = wanted(budget=20).limits(np.array([0, 5, 30]), started=0.0, each=0.0, free=False)
    assert limits.left is not None
    assert limits.left.tolist() == [17, 12, 0]
    assert wanted(budget=20).limits(np.array([0]), 0.0, 0.0, free=True).left is None
    timed = wanted(deadline=2.0, n=2).limits(np.array([0, 0]), started=100.0, each=0.1, free=False)
    assert timed.until == pytest.approx(100.0 + 2.0 - 0.1 * 2 * 3)


def test_why_a_search_was_stopped() -> None:
    assert wanted(budget=9).why_stopped() == "Stopped at the budget of 9 rows asked"
    assert wanted(budget=9, deadline=0.5).why_stopped() == "Stopped at the budget of 9 rows asked or the deadline of 0.5 s"
