"""The paper's experiments on tiny data."""

import pytest
from benchmarks import paper
from benchmarks.scoring import Judge
from benchmarks.setting import prepare
from benchmarks.store import Cell, Key


@pytest.fixture(scope="module")
def experiments() -> paper.Experiments:
    setting = prepare("german_credit", "logistic", seed=0, train_rows=150)
    return paper.Experiments(setting, Judge(setting), model_rows=3)


def cell(experiments: paper.Experiments, name: str) -> Cell:
    return experiments.cell(Key("german_credit", "logistic", paper.PAPER, name, 0), "test")


def test_ce1_answers_one_row_at_a_time(experiments: paper.Experiments) -> None:
    found = cell(experiments, paper.CE1)
    assert found.lines["row"].tolist() == [0, 1, 2]
    assert found.lines["seconds"].gt(0).all()
    assert found.about["setup"] > 0


def test_ce2_tries_every_feature_by_itself(experiments: paper.Experiments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "TIMED_ROWS", 1)
    lines = cell(experiments, paper.CE2).lines
    assert len(lines) == 3 * 20
    assert lines["feature"].nunique() == 20
    valid = lines[lines["valid"] == 1]
    assert 0 < len(valid) < len(lines)
    assert (valid["changed"] == valid["feature"]).all()
    assert lines["seconds"].notna().sum() == 20


def test_ce3_leaves_frozen_columns_alone(experiments: paper.Experiments) -> None:
    lines = cell(experiments, paper.CE3).lines
    frozen = set(experiments.setting.immutable)
    assert frozen
    assert not any(frozen & set(changed.split("|")) for changed in lines["changed"])


def test_beyond_the_first_point_is_farther(experiments: paper.Experiments) -> None:
    first, beyond = (cell(experiments, name(1.0)).lines["proximity"].mean() for name in (paper.at_step, paper.beyond))
    assert beyond > first


def test_a_robust_answer_holds_under_shakes_it_has_not_seen(experiments: paper.Experiments) -> None:
    lines = cell(experiments, paper.at_share(0.95)).lines
    assert lines.loc[lines["valid"] == 1, "robust"].mean() > 0.85


def test_examples_mark_what_each_answer_changes(experiments: paper.Experiments) -> None:
    shown = cell(experiments, paper.EXAMPLES).about["examples"]
    assert shown["answers"]
    for answer in shown["answers"]:
        moved = [after != before for after, before in zip(answer["values"], shown["input"], strict=True)]
        assert moved == answer["changed"]
        assert any(moved)
        if answer["title"] == "FASTER-CE2":
            assert sum(moved) == 1
