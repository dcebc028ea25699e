"""What a reader of a bias reading sees: numbers, flags, and the caution with every rendering."""

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fasterce.fairness.normals import Angles
from fasterce.fairness.recourse import recourse_gap
from fasterce.viz.canvas import BLUE, ORANGE

HOSTILE = "<script>alert('$x_$')</script>"


@pytest.fixture
def gap(build):
    rows = pd.DataFrame({"faith": ["a", "b"] * 10 + [HOSTILE] * 2, "pay": np.arange(22)})
    counterfactuals = [(k, "line", {"pay": (k + 1) % 22}, 0.2 + 0.3 * (k % 2)) for k in range(20)]
    none = {20: ("none_found", "None."), 21: ("already_target", "")}
    return recourse_gap(build(rows, counterfactuals, verdicts=none), ["faith"])


def a_pair(protected, category, kind, other, other_category, degrees, fit=0.9, mirror=False):
    beyond = bool(degrees < 60 or degrees > 120)
    return {
        "protected": protected, "category": category, "kind": kind, "other": other, "other_category": other_category,
        "degrees": degrees, "chance_low": 60.0, "chance_high": 120.0, "beyond_chance": beyond, "fit": fit, "other_fit": 0.8,
        "telling": beyond and fit > 0.2, "mirror": mirror,
    }  # fmt: skip


@pytest.fixture
def angles():
    pairs = [
        a_pair("sex", "f", "prediction", "prediction", "yes", 131.0),
        a_pair("sex", "m", "prediction", "prediction", "yes", 49.0, mirror=True),
        a_pair("age", None, "prediction", "prediction", "yes", 88.0),
        a_pair("sex", "f", "feature", HOSTILE, None, 31.0),
        a_pair("sex", "f", "feature", "town", "rome", 22.0, fit=0.1),
        a_pair("sex", "f", "feature", "town", "oslo", float("nan")),
        *(a_pair("sex", "f", "feature", f"f{k}", None, 90.0 + k) for k in range(20)),
    ]
    frame = pd.DataFrame(pairs)
    frame["category"] = pd.Series([pair["category"] for pair in pairs], dtype=object)
    frame["other_category"] = pd.Series([pair["other_category"] for pair in pairs], dtype=object)
    return Angles(frame, pd.DataFrame(), 14, (60.0, 120.0))


@pytest.fixture(params=["angles", "gap"])
def result(request):
    return request.getfixturevalue(request.param)


def plain(words):
    return " ".join(str(words).split())


def labels(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def everything(figure):
    figure.draw_without_rendering()
    return " ".join(str(text.get_text()) for text in figure.findobj(lambda part: hasattr(part, "get_text")))


def test_the_caution_stands_with_every_rendering(result):
    pytest.importorskip("matplotlib")
    page = io.StringIO()
    Console(file=page, width=90).print(result)
    for words in (str(result), page.getvalue(), result._repr_html_(), everything(result.plot())):
        assert plain(result.caution) in plain(words)


def test_nobodys_data_runs_on_the_page(result):
    assert "<script" not in result._repr_html_()
    assert "&lt;script" in result._repr_html_()


def test_angles_are_read_for_the_reader(angles):
    lines = [plain(line) for line in str(angles).splitlines()]
    assert "sex = f prediction = yes 131° 0.90, 0.80 go apart" in lines
    assert "age prediction = yes 88° 0.90, 0.80 could be chance" in lines
    assert "sex = f town = rome 22° 0.10, 0.80 poor fit" in lines
    assert not any(line.startswith("sex = m") for line in lines)
    assert any(line.endswith("go together") for line in lines)


def test_many_angles_are_cut_to_the_furthest_which_the_caption_reports(angles):
    assert "the 12 angles of 23 furthest from 90°" in str(angles)
    assert "f19" in str(angles)
    assert "f1 " not in str(angles)
    assert "3 of 24 angles here lie outside, where chance alone would put about 1" in plain(angles).replace(
        "25 angles", "24 angles"
    )


def test_a_gap_is_shown_with_its_interval_its_flags_and_who_was_left_out(gap):
    page = io.StringIO()
    Console(file=page, width=160).print(gap)
    words = plain(page.getvalue())
    assert "a * 10 100% (72–100%) 0.2 (0.2 to 0.2) 0.2 0%" in words
    assert "b 10 100% (72–100%) 0.5 (0.5 to 0.5) 0.5 +0.3 (+0.3 to +0.3) 0%" in words
    assert "† fewer than 5 rows" in words
    assert "fewer than 20 counterfactuals" in words
    assert "Left out: 1 already_target." in words
    assert "</script> †" in words


def test_the_gaps_dots_and_whiskers_stand_where_the_numbers_are(gap):
    pytest.importorskip("matplotlib")
    figure = gap.plot()
    (ax,) = figure.axes
    dots = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([0.2, 0.5])
    whiskers = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert whiskers == gap.frame.loc[~gap.frame["few"], ["mean_low", "mean_high"]].to_numpy().tolist()
    colors = [line.get_color() for line in ax.lines if line.get_marker() == "o"]
    assert colors == [BLUE, ORANGE]
    assert labels(figure)[1:] == ["a *", "b"]
    assert "none found" in everything(figure)


def test_only_telling_angles_are_filled(angles):
    pytest.importorskip("matplotlib")
    (ax,) = angles.plot().axes
    dots = {float(line.get_xdata()[0]): line.get_markerfacecolor() for line in ax.lines if line.get_marker() == "o"}
    assert dots[131.0] not in ("white", "none")
    assert dots[31.0] not in ("white", "none")
    assert dots[88.0] == dots[22.0] == "white"


def test_both_figures_can_share_one_with_others(angles, gap):
    figure_module = pytest.importorskip("matplotlib.figure")
    figure = figure_module.Figure(figsize=(16, 8))
    left, right = figure.subplots(1, 2)
    assert angles.plot(left) is figure
    assert gap.plot(right) is figure
    words = plain(everything(figure))
    assert plain(angles.caution) in words
    assert plain(gap.caution) in words


def test_figures_leave_pyplot_alone(result):
    pytest.importorskip("matplotlib")
    import sys

    before = sys.modules.get("matplotlib.pyplot", SimpleNamespace(get_fignums=list)).get_fignums()
    result.plot()
    assert sys.modules.get("matplotlib.pyplot", SimpleNamespace(get_fignums=list)).get_fignums() == before
