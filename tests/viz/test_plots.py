"""What the figures say: which changes, from where to where, and where the walk flips."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.errors import InputError, MissingExtraError

pytest.importorskip("matplotlib")

from fasterce.viz import plots


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def dots(axes):
    return [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]


def drawn(figure):
    """A figure that cannot be drawn shows only when it is drawn."""
    figure.draw_without_rendering()
    return figure


def test_a_dumbbell_names_every_change_of_every_counterfactual(loans):
    figure = drawn(plots.dumbbell(loans, row=0))
    first, second = figure.axes
    assert figure.get_suptitle() == "Row ann: refused → granted"
    assert labels(first) == ["income", "rate"]
    assert {"9,000", "52,000", "0.5", "1.75"} <= set(texts(first))
    assert labels(second) == ["job"]
    assert texts(second) == ["clerk → nurse"]
    assert "line" in first.get_title(loc="left")
    assert "0.312" in first.get_title(loc="left")


def test_dots_stand_where_the_values_lie_within_the_range(loans):
    first = plots.dumbbell(loans).axes[0]
    income = [0.0, (52000 - 9000) / (120000 - 9000)]
    rate = [0.0, (1.75 - 0.5) / (2.25 - 0.5)]
    assert dots(first) == pytest.approx(income + rate)
    assert {"120,000", "2.25"} <= set(texts(first))


def test_one_counterfactual_can_be_picked(loans):
    (only,) = plots.dumbbell(loans, row=0, rank=1).axes
    assert labels(only) == ["job"]


def test_a_row_without_counterfactual_says_why(loans):
    (only,) = drawn(plots.dumbbell(loans, row=2)).axes
    assert texts(only) == ["none_found: No way led to granted within 500 rows."]


@pytest.mark.parametrize("which", [{"row": 3}, {"row": -1}, {"row": 0, "rank": 2}])
def test_a_position_that_does_not_exist_is_named(loans, which):
    with pytest.raises(InputError, match=next(reversed(which))):
        plots.dumbbell(loans, **which)


def test_values_outside_the_observed_range_stay_in_the_picture(build):
    training = pd.DataFrame({"pay": [0.0, 10.0]})
    explanation = build(pd.DataFrame({"pay": [500.0]}), [(0, "line", {"pay": 5.0}, 1.0)], training=training)
    (only,) = drawn(plots.dumbbell(explanation)).axes
    left, right = only.get_xlim()
    assert all(left < x < right for x in dots(only))
    assert "500" in texts(only)


def test_dollar_signs_are_not_read_as_formulas(build):
    rows = pd.DataFrame({r"$\frac{pay$": ["$1$", r"$\bad$"]})
    explanation = build(rows, [(0, "$x_$", {r"$\frac{pay$": r"$\bad$"}, 1.0)], prediction="$y_$", target="$z_$")
    drawn(plots.dumbbell(explanation))
    drawn(plots.summary(explanation))


def test_panels_and_labels_do_not_overlap_however_short_the_way(build, people):
    near = [(0, "line", {"age": 32, "income": 10500}, 0.1), (0, "tree", {"rate": 0.55, "job": "nurse"}, 0.2)]
    figure = drawn(plots.dumbbell(build(people, near)))
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        clashes = [(a, b) for k, a in enumerate(boxes) for b in boxes[k + 1 :] if a.overlaps(b)]
        assert not clashes
    upper, lower = (axes.get_tightbbox() for axes in figure.axes)
    assert upper.y0 > lower.y1


def test_the_summary_counts_how_often_each_feature_changes(loans):
    (only,) = drawn(plots.summary(loans)).axes
    assert labels(only) == ["age", "income", "rate"]
    assert [bar.get_width() for bar in only.patches] == [1, 1, 1]
    assert texts(only) == ["1  (50%)"] * 3


def test_the_summary_puts_the_most_frequent_first_and_stops_at_fifteen(build):
    rows = pd.DataFrame({f"f{k}": [0, 0, 9] for k in range(20)})
    everything = {f"f{k}": 9 for k in range(20)}
    figure = plots.summary(build(rows, [(0, "line", everything, 1.0), (1, "line", {"f18": 9}, 0.1)]))
    (only,) = figure.axes
    assert len(only.patches) == 15
    assert labels(only)[0] == "f18"
    longest: Any = only.patches[0]
    assert longest.get_width() == 2
    assert "15 most frequent of 20" in figure.get_suptitle()


def test_the_summary_of_nothing_says_so(build, people):
    (only,) = drawn(plots.summary(build(people.iloc[:0], training=people))).axes
    assert texts(only) == ["No counterfactual was found."]


def a_walk(flip=3, steps=6):
    along = np.linspace(0.0, 2.5, steps)
    return SimpleNamespace(
        distance=along,
        height=along - 1.2,
        side=0.1 * along,
        valid=np.arange(steps) >= flip if flip >= 0 else np.zeros(steps, dtype=bool),
        flip=flip,
        cloud_height=np.linspace(-2, 2, 40),
        cloud_side=np.cos(np.arange(40)),
        cloud_wanted=np.arange(40) >= 30,
        label="Row ann",
        target="$granted$",
    )


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def by_label(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_a_walk_marks_its_flip():
    figure = drawn(plots.walk(a_walk(flip=3)))
    (axes,) = figure.axes
    star = by_label(axes, "flip")
    assert star.get_marker() == "*"
    assert star.get_xydata().tolist() == [pytest.approx([0.3, 0.15])]
    assert "flips at step 3\ndistance 1.5" in texts(axes)
    assert "flip" in legend(figure)


def test_steps_are_hollow_before_the_flip_and_filled_after_it():
    (axes,) = plots.walk(a_walk(flip=4)).axes
    hollow, filled = by_label(axes, "step, not flipped"), by_label(axes, "step, flipped")
    assert hollow.get_markerfacecolor() == "white"
    assert filled.get_markerfacecolor() not in ("white", "none")
    assert (len(hollow.get_xdata()), len(filled.get_xdata())) == (4, 2)


def test_a_walk_shows_the_hyperplane_and_both_kinds_of_samples():
    (axes,) = plots.walk(a_walk()).axes
    assert list(by_label(axes, "hyperplane").get_xdata()) == [0.0, 0.0]
    points: Any = axes.collections
    other, wanted = points
    assert (len(other.get_offsets()), len(wanted.get_offsets())) == (30, 10)
    assert other.get_facecolor().tolist() != wanted.get_facecolor().tolist()


def test_a_walk_that_never_flips_has_no_star():
    figure = drawn(plots.walk(a_walk(flip=-1)))
    assert "no flip in 6 steps" in texts(figure.axes[0])
    assert "flip" not in legend(figure)
    assert "step, flipped" not in legend(figure)


def test_figures_leave_pyplot_alone(loans):
    before = sys.modules.get("matplotlib.pyplot")
    figures = before.get_fignums() if before else []
    plots.dumbbell(loans), plots.summary(loans), plots.walk(a_walk())
    after = sys.modules.get("matplotlib.pyplot")
    assert (after.get_fignums() if after else []) == figures


def test_without_matplotlib_the_extra_is_named(monkeypatch, loans):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[plots\]"):
        plots.dumbbell(loans)
