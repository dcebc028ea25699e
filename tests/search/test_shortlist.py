"""Ranking before asking, against the copy asked candidate by candidate."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.search import shortlist as lists
from fasterce.search.context import SearchContext
from fasterce.search.distance import Distance
from fasterce.search.judge import Judge, Verdict
from fasterce.search.query_targets import Named
from fasterce.search.shortlist import NOBODY, Sets, Shortlist, expectations, rows_at_once, shortlist
from fasterce.surrogate.runtime import lead_of

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0], [6.2, 3.0, 0.4, 0.0], [0.0, 1.0, 10.0, 12.0]]
START = np.array([-0.7, -0.2, -1.5, -0.4, -3.0])
TARGET = np.array([1, 0, 1, 0, 1])
NO_CEILING = np.full(5, np.inf)


def scene(toys: Any, informative: bool = True, classes: int = 2, hidden: int = 96, **constraints: Any) -> SearchContext:
    """Random tables for a copy; whom to ask does not matter here."""
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lambda points: points[:, 0] - 5.0)
    state = replace(toys.state(codec, codes, model), surrogate=toys.any_copy(codec, classes, hidden=hidden))
    priced = Distance.percentile(codec)
    judge = Judge(model, Named(TARGET if classes == 2 else TARGET + 1), informative)
    return SearchContext(state, toys.domain(codec, ROWS, **constraints), judge, priced=priced, start=START)


@pytest.fixture(scope="module", params=["as they are", "changed"])
def listed(toys: Any, request: pytest.FixtureRequest) -> tuple[SearchContext, np.ndarray, Shortlist]:
    """A list around the rows themselves, and one around rows two of whose features were changed already."""
    context = scene(toys, upper={0: 9.5})
    state = context.domain.base
    if request.param == "changed":
        state = state.copy()
        state[:, 0], state[:, 1] = 9.37, 3.0 - state[:, 1]
    return context, state, shortlist(context, state, START)


def all_picks(found: Shortlist) -> np.ndarray:
    return np.tile(np.arange(found.price.shape[1]), (len(found.price), 1))


def foreseen(context: SearchContext, state: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The copy's margins, moved by how far it is off at the state itself."""
    copy, target = context.state.surrogate, context.judge.target
    assert copy is not None
    own = lead_of(copy.outputs_of(state[:, None]), target)[:, 0]
    return lead_of(copy.outputs_of(codes), target) + (START - own)[:, None]


def test_expectations_are_the_copys_margins_of_the_edited_rows(listed: Any) -> None:
    context, state, found = listed
    codes = found.codes(all_picks(found)).codes
    real = np.isfinite(found.price)
    assert real[:, len(found.edits.feature) :].any(axis=1).all(), "there are sets"
    np.testing.assert_allclose(found.expected[real], foreseen(context, state, codes)[real], atol=2e-5)


def test_prices_are_the_distances_of_the_edited_rows(listed: Any) -> None:
    context, _, found = listed
    codes = found.codes(all_picks(found)).codes
    real = np.isfinite(found.price)
    np.testing.assert_allclose(found.price[real], context.distance.total(codes, context.domain.row[:, None])[real], atol=1e-8)


def test_every_open_candidate_is_legal_and_changes_as_many_features_as_it_has_members(listed: Any) -> None:
    context, state, found = listed
    picks = all_picks(found)
    codes, real = found.codes(picks).codes, np.isfinite(found.price)
    assert context.domain.contains(codes)[real].all()
    np.testing.assert_array_equal((codes != state[:, None]).sum(axis=2)[real], (found.members(picks) >= 0).sum(axis=2)[real])


def test_sets_are_every_pair_and_every_leader_with_every_option() -> None:
    rng = np.random.default_rng(0)
    option = np.stack([rng.permutation(50)[:6] for _ in range(3)])
    leaders = np.stack([[[0, 1], [2, 5]], [[3, 4], [0, 5]], [[1, 2], [1, 3]]])
    sets, each = Sets(option, leaders), rng.integers(1, 1000, size=(3, 6)).astype(float)
    total = sets.add_up(each)
    members = sets.members(np.tile(np.arange(total.shape[1]), (3, 1)))
    for i in range(3):
        pairs = [(option[i, a], option[i, b], NOBODY) for a in range(6) for b in range(a + 1, 6)]
        triples = [(option[i, a], option[i, b], option[i, c]) for a, b in leaders[i] for c in range(6)]
        assert [tuple(set_) for set_ in members[i].tolist()] == [tuple(int(m) for m in set_) for set_ in pairs + triples]
        value = dict(zip(option[i].tolist(), each[i], strict=True))
        assert total[i].tolist() == [sum(value[m] for m in set_ if m >= 0) for set_ in members[i].tolist()]
    np.testing.assert_array_equal(sets.take(np.array([2])).add_up(each[2:]), total[2:])


def test_the_cheapest_is_the_cheapest_that_reaches_the_level(listed: Any) -> None:
    _, _, found = listed
    margin = found.margin()
    for level in (-0.5, 0.0, 0.4):
        (picks,) = found.cheapest(margin, [level], NO_CEILING).T
        for i, pick in enumerate(picks):
            reaching = np.where(margin[i] >= level, found.hoped(margin)[i], np.inf)
            assert found.hoped(margin)[i, pick] == reaching.min() if np.isfinite(reaching.min()) else pick == NOBODY


def test_picks_differ_reach_their_level_and_stay_below_the_ceiling(listed: Any) -> None:
    _, _, found = listed
    margin, safety = found.margin(), [0.0, 0.2, 0.6, -0.3]
    ceiling = np.array([0.4, np.inf, 1.2, 0.0, 0.7])
    picks = found.cheapest(margin, safety, ceiling)
    assert (picks >= 0).any()
    assert (picks[3] == NOBODY).all(), "nothing is cheaper than nothing"
    for i, mine in enumerate(picks):
        there = mine >= 0
        assert len(set(mine[there])) == there.sum()
        assert (found.hoped(margin)[i, mine[there]] < ceiling[i]).all()
        assert (margin[i, mine[there]] >= np.array(safety)[there]).all()


def test_what_is_closed_is_never_picked(listed: Any) -> None:
    _, _, found = listed
    found = replace(found, price=np.where(np.arange(found.price.shape[1]) % 2, np.inf, found.price))
    margin = found.margin()
    picks = found.cheapest(margin, [0.0, 0.5, -9.0], NO_CEILING)
    sure = found.surest(margin, 3, picks)
    every = np.concatenate([picks, sure], axis=1)
    assert (every >= 0).any()
    assert (every[every >= 0] % 2 == 0).all()


def test_the_surest_lead_by_most_and_are_of_different_features(listed: Any) -> None:
    _, _, found = listed
    margin, singles = found.margin(), len(found.edits.feature)
    taken = found.cheapest(margin, [0.0], NO_CEILING)
    picks = found.surest(margin, 3, taken)
    for i, mine in enumerate(picks):
        assert len(set(found.edits.feature[mine])) == 3
        worth = np.where(np.isfinite(found.price[i, :singles]), margin[i, :singles], -np.inf)
        worth[taken[i][taken[i] < singles]] = -np.inf
        assert margin[i, mine[0]] == worth.max()


@pytest.mark.parametrize(("size", "members"), [(1, 1), (2, 2), (3, 3)])
def test_sets_of_one_size(listed: Any, size: int, members: int) -> None:
    _, _, found = listed
    only = found.of_size(size)
    count = (found.members(all_picks(found)) >= 0).sum(axis=2)
    np.testing.assert_array_equal(np.isfinite(only.price), np.isfinite(found.price) & (count == members))


def test_learning_closes_what_was_evaluated_and_corrects_the_margin(toys: Any) -> None:
    found = shortlist(scene(toys), np.array(ROWS), START)
    before = found.margin().copy()
    picks = np.array([[4], [4], [4], [4], [NOBODY]])
    truth = before[np.arange(5)[:, None], np.maximum(picks, 0)] + np.array([[0.5], [-0.25], [0.0], [1.0], [9.0]])
    found.learn(picks, Verdict(truth > 0, truth), before, informative=True)
    after, feature = found.margin(), found.edits.feature
    np.testing.assert_allclose(after[np.arange(4), 4], truth[:4, 0])
    assert np.isinf(found.price[:4, 4]).all()
    assert np.isfinite(found.price[4]).any()
    np.testing.assert_array_equal(after[4], before[4])
    singles = np.arange(len(feature))
    moved = after[0, singles] - before[0, singles]
    np.testing.assert_allclose(moved, 0.5 * (feature == feature[4]), atol=1e-12)
    members = found.members(all_picks(found))[0]
    takes_part = ((members >= 0) & (feature[members] == feature[4])).sum(axis=1)
    np.testing.assert_allclose(after[0] - before[0], 0.5 * takes_part, atol=1e-12)


def test_a_sets_error_is_shared_among_its_members(toys: Any) -> None:
    found = shortlist(scene(toys), np.array(ROWS), START)
    before = found.margin().copy()
    singles = len(found.edits.feature)
    pair = singles + int(np.isfinite(found.price[0, singles:]).argmax())
    picks = np.array([[pair], *[[NOBODY]] * 4])
    truth = np.where(picks >= 0, before[:, pair : pair + 1] - 0.8, -np.inf)
    found.learn(picks, Verdict(truth > 0, truth), before, informative=True)
    after = found.margin()
    one, two, _ = found.members(picks)[0, 0]
    np.testing.assert_allclose(after[0, [pair, one, two]] - before[0, [pair, one, two]], [-0.8, -0.4, -0.4])


@pytest.mark.parametrize("flips", [True, False])
def test_with_labels_only_a_surprise_moves_the_guess_to_the_boundary(toys: Any, flips: bool) -> None:
    found = shortlist(scene(toys, informative=False), np.array(ROWS), START)
    before = found.margin().copy()
    wrong = np.isfinite(found.price) & ((before < 0) if flips else (before > 0))
    wrong[:, len(found.edits.feature) :] = False
    picks = np.where(wrong.any(axis=1), wrong.argmax(axis=1), NOBODY)[:, None]
    said = np.where(flips, 1.0, -1.0) * np.ones(picks.shape)
    found.learn(picks, Verdict(said > 0, said), before, informative=False)
    asked = np.flatnonzero(picks[:, 0] >= 0)
    assert asked.size
    np.testing.assert_allclose(found.margin()[asked, picks[asked, 0]], 0.0, atol=1e-12)


def test_an_unasked_or_failed_pick_teaches_nothing(toys: Any) -> None:
    found = shortlist(scene(toys), np.array(ROWS), START)
    before = found.margin().copy()
    nothing = np.full((5, 1), -np.inf)
    found.learn(np.full((5, 1), 3), Verdict(nothing > 0, nothing), before, informative=True)
    np.testing.assert_array_equal(found.margin(), before)
    assert np.isinf(found.price[:, 3]).all(), "but it is not asked again"


@pytest.mark.parametrize("informative", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("hidden", [8, 96])
def test_a_row_alone_is_ranked_as_in_company_to_the_last_bit(toys: Any, informative: bool, classes: int, hidden: int) -> None:
    context = scene(toys, informative, classes, hidden)
    together = shortlist(context, context.domain.base, START)
    for i in range(len(ROWS)):
        one = context.take(np.array([i]))
        alone = shortlist(one, one.domain.base, START[[i]])
        np.testing.assert_array_equal(alone.expected[0], together.expected[i])
        np.testing.assert_array_equal(alone.price[0], together.price[i])
        np.testing.assert_array_equal(alone.members(all_picks(alone))[0], together.members(all_picks(together))[i])
        taken = together.take(np.array([i]))
        np.testing.assert_array_equal(taken.margin(), alone.margin())


def test_a_row_is_ranked_the_same_among_many(toys: Any) -> None:
    """Large batches go another way through the options of every feature, in several chunks."""
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lambda points: points[:, 0] + points[:, 2] - 10.0)
    state = replace(toys.state(codec, codes, model), surrogate=toys.any_copy(codec))
    context = toys.context(state, toys.domain(codec, codes), model)
    many = shortlist(context, context.domain.base, context.start)
    for i in (0, 63, 64, 150, 299):
        one = context.take(np.array([i]))
        alone = shortlist(one, one.domain.base, one.start)
        np.testing.assert_array_equal(alone.expected[0], many.expected[i])
        np.testing.assert_array_equal(alone.price[0], many.price[i])
        assert alone.sets is not None
        assert many.sets is not None
        np.testing.assert_array_equal(alone.sets.option[0], many.sets.option[i])
        np.testing.assert_array_equal(alone.sets.leaders[0], many.sets.leaders[i])


def test_labels_only_starts_on_the_side_the_model_says(toys: Any) -> None:
    """The copy may believe a row flips already: then it is put just on the other side, and all it expects with it."""
    context = scene(toys, informative=False)
    found = shortlist(context, context.domain.base, np.full(5, -1.0))
    assert context.state.surrogate is not None
    guess = lead_of(context.state.surrogate.outputs_of(context.domain.base[:, None]), TARGET)[:, 0]
    assert (guess > 0).any()
    assert (guess < -0.5).any()
    plain = lead_of(context.state.surrogate.outputs_of(found.codes(all_picks(found)).codes), TARGET)
    shift = found.expected[:, 0] - plain[:, 0]
    np.testing.assert_allclose(shift, np.minimum(0.0, -0.03 - guess), atol=1e-5)


def test_frozen_and_forbidden_values_are_not_listed(toys: Any) -> None:
    context = scene(toys, frozen=[2], upper={0: 6.0}, allowed={1: [1, 2]})
    found = shortlist(context, context.domain.base, START)
    codes = found.codes(all_picks(found)).codes[np.isfinite(found.price)]
    assert set(codes[:, 1]) - {row[1] for row in ROWS} <= {1.0, 2.0}
    assert not (found.edits.open & (found.edits.feature == 2)).any()
    assert found.edits.value[found.edits.open & (found.edits.feature == 0)].max() <= 6.0


def test_nothing_free_lists_nothing(toys: Any) -> None:
    context = scene(toys, frozen=[0, 1, 2, 3])
    found = shortlist(context, context.domain.base, START)
    assert np.isinf(found.price).all()
    assert (found.cheapest(found.margin(), [0.0, -99.0], NO_CEILING) == NOBODY).all()
    assert (found.surest(found.margin(), 2, np.full((5, 1), NOBODY)) == NOBODY).all()


def test_single_edits_only(toys: Any) -> None:
    context = scene(toys)
    alone = shortlist(context, context.domain.base, START, together=False)
    assert alone.sets is None
    np.testing.assert_array_equal(alone.expected, expectations(context, alone.edits, START))
    both = shortlist(context, context.domain.base, START)
    np.testing.assert_array_equal(both.price[:, : alone.price.shape[1]], alone.price)


def test_rows_are_listed_together_as_far_as_memory_goes(toys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = scene(toys)
    listed = shortlist(context, context.domain.base, START).price.shape[1]
    monkeypatch.setattr(lists, "MOST_LISTED", 50_000)
    assert 1 <= rows_at_once(context.state) * listed <= 50_000
    monkeypatch.setattr(lists, "MOST_READ", 0)
    assert rows_at_once(context.state) == 1


def test_the_most_hopeful_save_most_for_the_chance_they_have(listed: Any) -> None:
    _, _, found = listed
    margin = np.full_like(found.price, -100.0)
    ceiling = np.full(len(margin), 1.0)
    price = np.full_like(found.price, np.inf)
    price[:, :4] = [0.9, 0.5, 0.1, 1.5]
    margin[:, :4] = [3.0, 0.0, -3.0, 9.0]
    plain = replace(found, price=price, spare=np.zeros_like(price))
    # 0.9: sure but saves a tenth; 0.5: even odds of a half; 0.1: saves most, hardly likely; 1.5 saves nothing.
    np.testing.assert_array_equal(plain.most_hopeful(margin, 1.0, ceiling, 1)[:, 0], 1)
    assert set(plain.most_hopeful(margin, 1.0, ceiling, 3)[0]) == {NOBODY, 0, 1}
    assert set(plain.most_hopeful(margin, 4.0, ceiling, 3)[0]) == {0, 1, 2}
