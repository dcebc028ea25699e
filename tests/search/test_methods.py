"""The three variants on problems whose best answer is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import fitting
from fasterce.rules import Rules
from fasterce.search import realism, variants
from fasterce.search.dialogue import converse
from fasterce.search.goal import Named
from fasterce.search.judge import Judge
from fasterce.search.pool import Pool
from fasterce.search.propose import nearest_examples
from fasterce.search.task import Task


def run(variant: Any, task: Task, n: int = 1) -> Pool:
    return converse(task.judge, [variant(task, n)])[0]


ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]
ALL = list(variants.VARIANTS.items())


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def best(pool: Any) -> np.ndarray:
    return pool.best(1).codes[:, 0]


@pytest.mark.parametrize(("name", "variant"), ALL)
@pytest.mark.parametrize("graded", [True, False])
def test_answers_flip_and_obey(toys: Any, name: str, variant: Any, graded: bool) -> None:
    task, _ = toys.scene(lead, ROWS[:2], graded=graded, frozen=[1], upper={0: 9.5})
    pool = run(variant, task)
    assert pool.valid.any(axis=1).all()
    assert task.domain.contains(pool.codes)[pool.valid].all()
    rows, _ = np.nonzero(pool.valid)
    np.testing.assert_array_equal((lead(pool.codes[pool.valid]) > 0).astype(int), task.judge.target[rows])


def test_closest_finds_the_known_boundary(toys: Any) -> None:
    """Moving a and b costs the same a unit: the distance to the boundary is the lead's size over the range."""
    task, _ = toys.scene(lead, ROWS)
    found = run(variants.closest, task)
    distance = task.distance.total(best(found), task.domain.row)
    least = np.abs(lead(np.array(ROWS))) / 10
    assert (distance >= least - 1e-9).all()
    assert (distance <= least + 0.03).all()


def test_closest_prefers_the_cheaper_feature(toys: Any) -> None:
    task, _ = toys.scene(lambda codes: codes[:, 0] + 4 * codes[:, 2] - 32.0, ROWS[0])
    found = best(run(variants.closest, task))[0]
    np.testing.assert_array_equal(np.flatnonzero(found != ROWS[0]), [2])
    assert found[2] == pytest.approx(7.26, abs=0.03)


def test_sparse_finds_the_cheapest_single_change(toys: Any) -> None:
    task, _ = toys.scene(lambda codes: np.maximum(codes[:, 0] - 9.0, codes[:, 3] - 12.2), ROWS[0])
    pool = run(variants.sparse, task)
    assert ((pool.codes != task.domain.base[:, None]).sum(axis=2)[pool.valid] == 1).all()
    np.testing.assert_array_equal(best(pool), [[3.0, 1.0, 5.0, 13.0]])
    assert {tuple(np.flatnonzero(code != ROWS[0])) for code in pool.codes[pool.valid]} == {(3,), (0,)}


@pytest.mark.parametrize("variant", [variants.sparse, variants.closest])
def test_two_features_where_one_is_not_enough(toys: Any, variant: Any) -> None:
    task, _ = toys.scene(lambda codes: np.minimum(codes[:, 0] - 6.0, codes[:, 2] - 7.0), ROWS[0])
    found = run(variant, task)
    assert found.valid.any()
    np.testing.assert_allclose(best(found), [[6.01, 1.0, 7.01, 7.0]], atol=0.3)


def test_sparse_looks_closer_where_the_coarse_levels_miss(toys: Any) -> None:
    task, _ = toys.scene(lambda codes: 0.2 - np.abs(codes[:, 0] - 4.55), ROWS[0])
    found = run(variants.sparse, task)
    assert found.valid.any()
    assert abs(best(found)[0, 0] - 4.55) < 0.2


def test_named_features_alone_change(toys: Any) -> None:
    task, _ = toys.scene(lead, ROWS[0], named=(2, 3), frozen=[0, 1])
    for _, variant in ALL:
        pool = run(variant, task)
        assert pool.valid.any()
        np.testing.assert_array_equal(pool.codes[pool.valid][:, [0, 1]], [[3.0, 1.0]] * int(pool.valid.sum()))


def test_a_category_that_must_change(toys: Any) -> None:
    task, _ = toys.scene(lambda codes: (codes[:, 1] == 3) - 0.5, ROWS)
    for _, variant in ALL:
        found = best(run(variant, task))
        assert (found[:, 1] == 3).all()
    np.testing.assert_array_equal(best(run(variants.closest, task))[:, [0, 2, 3]], np.array(ROWS)[:, [0, 2, 3]])


def test_only_permitted_categories_even_after_shrinking(toys: Any) -> None:
    """Category codes between the row's and the answer's are neither nearer nor permitted."""
    codec, codes = toys.codec(pd.DataFrame({"job": list("abcde") * 20, "x": np.arange(100.0)}))
    model = toys.Model(lambda points: np.isin(points[:, 0], [2, 4]) - 0.5)
    task = toys.task(toys.knowledge(codec, codes, model), toys.domain(codec, [0.0, 50.0], allowed={0: [0, 4]}), model)
    for _, variant in ALL:
        pool = run(variant, task)
        assert pool.valid.any()
        assert task.domain.contains(pool.codes)[pool.valid].all()


def test_margin_goes_beyond(toys: Any) -> None:
    near, _ = toys.scene(lead, ROWS[:2])
    far, _ = toys.scene(lead, ROWS[:2], margin=0.5)
    for _, variant in ALL:
        assert (np.abs(lead(best(run(variant, far)))) > np.abs(lead(best(run(variant, near)))) + 0.2).all()


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_a_row_alone_is_answered_as_in_company(toys: Any, name: str, variant: Any) -> None:
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lead)
    knowledge = toys.knowledge(codec, codes, model)
    together = run(variant, toys.task(knowledge, toys.domain(codec, codes[:25]), model)).best(1)
    for i in (0, 7, 24):
        alone = run(variant, toys.task(knowledge, toys.domain(codec, codes[i : i + 1]), model)).best(1)
        np.testing.assert_array_equal(alone.codes[0], together.codes[i])
        np.testing.assert_array_equal(alone.valid[0], together.valid[i])


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_the_number_of_questions_does_not_grow_with_the_rows(toys: Any, name: str, variant: Any) -> None:
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lead)
    knowledge = toys.knowledge(codec, codes, model)
    calls = []
    for rows in (codes[:2], codes[:60]):
        model.questions.clear()
        run(variant, toys.task(knowledge, toys.domain(codec, rows), model))
        calls.append(len(model.questions))
    assert max(calls) <= 9
    assert abs(calls[0] - calls[1]) <= 2


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_no_rows_no_answers(toys: Any, name: str, variant: Any) -> None:
    task, _ = toys.scene(lead, np.zeros((0, 4)))
    assert run(variant, task).codes.shape[0] == 0


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_several_different_options(toys: Any, name: str, variant: Any) -> None:
    task, _ = toys.scene(lead, ROWS[0])
    pool = run(variant, task, 3)
    sets = [tuple(np.flatnonzero(code != ROWS[0])) for code in pool.codes[0][pool.valid[0]]]
    assert len(sets) >= 2
    assert len(set(sets)) == len(sets)


def test_realistic_stays_near_known_examples(toys: Any) -> None:
    """a and b always go together in the data: the closest answer moves one of them, the realistic one both."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 10, 400)
    frame = pd.DataFrame({"a": a.round(2), "b": (a + rng.normal(size=400) * 0.1).round(2)})
    codec, codes = toys.codec(frame)
    direction = np.linalg.svd(codec.encode(codes), full_matrices=False)[2][:1]
    own = toys.identity.__class__(lambda matrix: matrix @ direction.T, lambda latent: latent @ direction)
    model = toys.Model(lambda points: points[:, 0] + points[:, 1] - 12.0)
    task = toys.task(toys.knowledge(codec, codes, model, own), toys.domain(codec, [[4.0, 4.0]]), model)
    close, real = best(run(variants.closest, task))[0], best(run(variants.realistic, task))[0]
    assert abs(real[0] - real[1]) < 1.0
    assert abs(close[0] - close[1]) > abs(real[0] - real[1])


@pytest.mark.parametrize("dial", [0.3, 0.5, 0.8])
def test_realistic_stays_as_near_to_people_as_the_dial_says(toys: Any, dial: float) -> None:
    """Distances from the row and from the nearest person add up to no less than the row's own from that person."""
    task, _ = toys.scene(lambda codes: codes[:, 0] + codes[:, 2] + 0.1 * codes[:, 3] - 16.0, ROWS)
    task = replace(task, realism=dial)
    found = run(variants.realistic, task).best(1)
    examples = nearest_examples(task, 12)
    away = realism.nearest(task, found.codes, examples)[:, 0]
    assert (away <= realism.allowed(task) + 0.05).all()
    nearest = task.knowledge.distance.total(examples, task.domain.row[:, None, :]).min(axis=1)
    assert (task.knowledge.distance.total(found.codes[:, 0], task.domain.row) + away >= nearest - 1e-6).all()


def test_the_dial_goes_from_close_to_a_real_person(toys: Any) -> None:
    task, _ = toys.scene(lambda codes: codes[:, 0] + codes[:, 2] + 0.1 * codes[:, 3] - 16.0, ROWS)
    close, middle, real = (best(run(variants.realistic, replace(task, realism=dial))) for dial in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(close, best(run(variants.closest, task)))
    examples = nearest_examples(task, 12)
    assert (real[:, None, :] == examples).all(axis=2).any(axis=1).all()
    price = [task.knowledge.distance.total(one, task.domain.row).mean() for one in (close, middle, real)]
    assert price[0] <= price[1] <= price[2]


@pytest.fixture(scope="module")
def learned() -> tuple[fitting.Learned, pd.DataFrame]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "income": rng.normal(50, 15, 300).round(1),
            "age": rng.integers(18, 80, 300),
            "owner": rng.random(300) < 0.4,
        }
    )
    settings = fitting.Settings(0, "auto", None, (lambda matrix: matrix, lambda latent: latent), False)
    return fitting.learn(approve, frame, None, settings), frame


def approve(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["income"] + 10 * frame["owner"] > 60, "yes", "no")


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_a_plain_function_and_a_frame(learned: tuple[fitting.Learned, pd.DataFrame], name: str, variant: Any) -> None:
    made, frame = learned
    table = made.table
    rows = frame[approve(frame) == "no"].head(20)
    domain, blocked = Rules.compile(table, made.knowledge.codec, None, None).domain(table.read(rows).codes)
    assert not blocked

    def ask(codes: np.ndarray) -> Any:
        from fasterce.predictor import Answers

        return Answers((approve(table.frame(codes)) == "yes").astype(np.intp))

    task = Task(made.knowledge, domain, Judge(ask, Named(np.ones(20, dtype=np.intp)), False), start=np.full(20, -1.0))
    pool = run(variant, task).best(1)
    assert pool.valid.all()
    assert (approve(table.frame(pool.codes[:, 0])) == "yes").all()
    if name != "realistic":
        needed = np.maximum(60 - rows["income"] - 10 * rows["owner"], 0).to_numpy()
        income = pool.codes[:, 0, 0] - rows["income"].to_numpy()
        span = float(made.knowledge.codec.profile.span[0])
        assert (income <= needed + span / 40 + 0.2).all()
