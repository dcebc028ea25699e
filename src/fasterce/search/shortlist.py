"""Rank before asking: what the distilled copy expects of every single change, of pairs and of triples, at no question.

Only the few that look best go to the model; its answers correct what is expected of the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fasterce.fitting.state import SearchState
from fasterce.latent.runtime import on_one_thread, spread
from fasterce.search import sweep
from fasterce.search.context import SearchContext
from fasterce.search.distance import filled_or_emptied
from fasterce.search.judge import Candidates, Edits, Verdict
from fasterce.surrogate.runtime import Surrogate
from fasterce.typing import Floats, Floats32, Indices

SHARES = (0.2, 0.4, 0.6, 0.8)
EACH = 3
LEADERS = 4
MOST_WEIGHED = 64
CHUNK_CELLS = 500_000
FEW_ROWS = 64
MOST_LISTED, MOST_READ = 6_000_000, 300_000
MOST_COMPLETED, MOST_AT_ONCE = 4_000_000, 2_000
NOBODY = -1
HOPE = 0.8
LITTLE = 0.1
LEAST_SAVED = 0.01


@dataclass
class Sets:
    """Which options (rows, O; positions in the edits) are combined: every pair, and the leading pairs (rows, L, 2) with
    every option."""

    option: Indices
    leaders: Indices

    @cached_property
    def pair(self) -> tuple[Indices, Indices]:
        return np.triu_indices(self.option.shape[1], k=1)

    def add_up(self, each: Floats) -> Floats:
        """The sums over all sets of a number every option has (rows, O)."""
        one, two = self.pair
        rows = np.arange(len(each))[:, None]
        led = each[rows, self.leaders[:, :, 0]] + each[rows, self.leaders[:, :, 1]]
        triples = (led[:, :, None] + each[:, None, :]).reshape(len(each), led.shape[1] * each.shape[1])
        return np.concatenate([each[:, one] + each[:, two], triples], axis=1)

    def members(self, place: Indices) -> Indices:
        """The edits (rows, Q, 3) of the sets at `place` (rows, Q), -1 for no third."""
        one, two = self.pair
        count, pairs = self.option.shape[1], len(one)
        rows = np.arange(len(place))[:, None]
        triple = np.maximum(place - pairs, 0)
        led = self.leaders[rows, triple // count]
        is_pair = place < pairs
        pair = np.minimum(place, pairs - 1)
        first = np.where(is_pair, one[pair], led[:, :, 0])
        second = np.where(is_pair, two[pair], led[:, :, 1])
        third = np.where(is_pair, NOBODY, self.option[rows, triple % count])
        return np.stack([self.option[rows, first], self.option[rows, second], third], axis=2)

    def take(self, rows: Indices) -> "Sets":
        return Sets(self.option[rows], self.leaders[rows])


@dataclass
class Shortlist:
    """Single edits of every row, then sets of two and three of them.

    `expected` (rows, K) is the margin the copy foresees, `price` what each costs (inf: not open or already asked),
    `off` (rows, features) how far it was wrong so far where a feature took part.
    """

    edits: Edits
    sets: Sets | None
    expected: Floats
    price: Floats
    off: Floats
    weight: Floats
    spare: Floats
    rate: Floats

    def hoped(self, margin: Floats) -> Floats:
        """What each may cost once its numbers are shrunk to where the margin is used up."""
        return np.asarray(self.price - HOPE * np.minimum(np.maximum(margin, 0.0) / self.rate, self.spare))

    def of_size(self, size: int) -> "Shortlist":
        """Only the sets of so many changes left open."""
        singles = len(self.edits.feature)
        pairs = singles + (len(self.sets.pair[0]) if self.sets else 0)
        first, end = [(0, singles), (singles, pairs), (pairs, self.price.shape[1])][size - 1]
        price = np.full_like(self.price, np.inf)
        price[:, first:end] = self.price[:, first:end]
        return replace(self, price=price)

    def without(self, picks: Indices) -> "Shortlist":
        """The same with some sets closed."""
        price = self.price.copy()
        rows, column = np.nonzero(picks >= 0)
        price[rows, picks[rows, column]] = np.inf
        return replace(self, price=price)

    def take(self, rows: Indices) -> "Shortlist":
        return Shortlist(
            self.edits.take(rows),
            self.sets.take(rows) if self.sets else None,
            self.expected[rows],
            self.price[rows],
            self.off[rows],
            self.weight[rows],
            self.spare[rows],
            self.rate[rows],
        )

    def members(self, picks: Indices) -> Indices:
        """The edits (rows, Q, 3) each pick stands for, -1 for none."""
        singles = len(self.edits.feature)
        alone = np.stack([picks, np.full_like(picks, NOBODY), np.full_like(picks, NOBODY)], axis=2)
        if self.sets is None:
            return alone
        return np.where((picks < singles)[:, :, None], alone, self.sets.members(np.maximum(picks - singles, 0)))

    def margin(self) -> Floats:
        """What is expected now: the copy's guess, corrected by what the model said about the same features."""
        if not self.weight.any():
            return self.expected
        mean = (self.off / np.maximum(self.weight, 1.0))[:, self.edits.feature]
        if self.sets is not None:
            mean = np.concatenate([mean, self.sets.add_up(np.take_along_axis(mean, self.sets.option, 1))], axis=1)
        return np.asarray(self.expected + mean)

    def cheapest(self, margin: Floats, safety: Sequence[float], ceiling: Floats) -> Indices:
        """For each level of safety the cheapest expected to reach it, all different; -1 where there is none."""
        picks = np.full((len(margin), len(safety)), NOBODY, dtype=np.intp)
        if margin.shape[1] == 0 or not safety:
            return picks
        hoped = self.hoped(margin)
        open_ = (hoped < ceiling[:, None]) & (margin >= min(safety))
        near, price = _least(np.where(open_, hoped, np.inf), MOST_WEIGHED)
        reached = np.take_along_axis(margin, near, 1)
        for q, level in enumerate(safety):
            _take(picks, q, np.where(reached >= level, price, np.inf), price)
        return np.where(picks >= 0, np.take_along_axis(near, np.maximum(picks, 0), 1), NOBODY)

    def most_hopeful(self, margin: Floats, error: float, ceiling: Floats, count: int) -> Indices:
        """The sets that save most of the `ceiling` on average: what each may save, times the chance that it flips where the
        copy is off by `error`; -1 where hardly any is saved."""
        if margin.shape[1] == 0:
            return np.full((len(margin), 0), NOBODY, dtype=np.intp)
        hoped = self.hoped(margin)
        saved = np.where(np.isfinite(hoped), np.maximum(ceiling[:, None] - hoped, 0.0), 0.0)
        # A logistic curve is the normal distribution's, within a hundredth.
        chance = 1.0 / (1.0 + np.exp(np.clip(-1.702 * margin / error, -50.0, 50.0)))
        picks, lost = _least(-saved * chance, min(count, margin.shape[1]))
        return np.where(lost < -LEAST_SAVED * np.minimum(ceiling, 1e9)[:, None], picks, NOBODY)

    def surest(self, margin: Floats, count: int, taken: Indices) -> Indices:
        """The smallest sets that are expected to lead by most, each of another feature than the last."""
        picks = np.full((len(margin), count), NOBODY, dtype=np.intp)
        singles = len(self.edits.feature)
        open_ = np.isfinite(self.price)
        alone = open_[:, :singles].any(axis=1)
        width = singles if alone.all() else margin.shape[1]
        worth = np.where(open_, -margin, np.inf)[:, :width]
        worth[alone, singles:] = np.inf
        if worth.size == 0:
            return picks
        every = np.arange(len(worth))
        for some in taken.T:
            there = (some >= 0) & (some < width)
            worth[every[there], some[there]] = np.inf
        first = self.members(np.broadcast_to(np.arange(width), worth.shape))[:, :, 0] if width > singles else None
        for q in range(count):
            chosen = _take(picks, q, worth, worth)
            feature = self.edits.feature[chosen if first is None else first[every, chosen]]
            mine = self.edits.feature[np.arange(width) if first is None else first]
            worth[(mine if first is not None else mine[None]) == feature[:, None]] = np.inf
        return picks

    def most_useful(self, lead: Floats) -> tuple[Indices, Floats]:
        """Of the single changes that bring at least half of the most any brings, the cheapest for what it brings: its
        place (rows, 1), and the margin then expected. Where nothing helps, none."""
        gain = np.where(np.isfinite(self.price), self.expected - lead[:, None], -np.inf)
        least = np.maximum(0.5 * gain.max(axis=1, initial=-np.inf), 1e-9)[:, None]
        cheapest = self.price.min(axis=1, keepdims=True, initial=np.inf)
        cheapest = np.where(np.isfinite(cheapest), cheapest, 0.0)
        merit = np.where(gain >= least, (self.price - cheapest + 1e-3) / np.maximum(gain, 1e-9), np.inf)
        pick = merit.argmin(axis=1)
        every = np.arange(len(pick))
        there = np.isfinite(merit[every, pick])
        return np.where(there, pick, NOBODY)[:, None], np.where(there, self.expected[every, pick], lead)

    def codes(self, picks: Indices) -> Candidates:
        """The chosen sets as candidates."""
        rows = np.arange(len(picks))[:, None]
        codes = np.repeat(self.edits.base[:, None, :], picks.shape[1], axis=1)
        place = np.broadcast_to(np.arange(picks.shape[1]), picks.shape)
        for member in np.moveaxis(self.members(picks), 2, 0):
            feature = self.edits.feature[member]
            value = np.where(member >= 0, self.edits.value[rows, member], codes[rows, place, feature])
            codes[rows, place, feature] = value
        return Candidates(codes, picks >= 0)

    def flat(self, rows: Indices, place: Indices) -> Floats:
        """The sets at some places (N,) of some rows (N,), as rows of codes."""
        codes = self.edits.base[rows]
        taken = self.members(np.broadcast_to(np.arange(self.price.shape[1]), self.price.shape))[rows, place]
        every = np.arange(len(rows))
        for member in taken.T:
            feature = self.edits.feature[member]
            codes[every, feature] = np.where(member >= 0, self.edits.value[rows, member], codes[every, feature])
        return codes

    def learn(self, picks: Indices, verdict: Verdict, margin: Floats, informative: bool) -> None:
        """Close what was asked, and note for its features by how much the guess was off."""
        rows = np.broadcast_to(np.arange(len(picks))[:, None], picks.shape)
        asked = (picks >= 0) & np.isfinite(verdict.margin)
        guess = margin[rows, picks]
        truth = verdict.margin if informative else np.where(verdict.valid, np.maximum(guess, 0.0), np.minimum(guess, 0.0))
        self.price[rows[picks >= 0], picks[picks >= 0]] = np.inf
        members = self.members(picks)
        share = np.where(asked, truth - guess, 0.0) / np.maximum((members >= 0).sum(axis=2), 1)
        for member in np.moveaxis(members, 2, 0):
            used = asked & (member >= 0)
            place = (rows[used], self.edits.feature[member[used]])
            np.add.at(self.off, place, share[used])
            np.add.at(self.weight, place, 1.0)


def _least(cost: Floats, most: int) -> tuple[Indices, Floats]:
    """The `most` cheapest of every row, ties by position, and what they cost."""
    if cost.shape[1] > most:
        near = np.sort(np.argpartition(cost, most, axis=1)[:, :most], axis=1)
    else:
        near = np.broadcast_to(np.arange(cost.shape[1]), cost.shape)
    return near, np.take_along_axis(cost, near, 1)


def _take(picks: Indices, q: int, cost: Floats, closing: Floats) -> Indices:
    """Put the cheapest of every row in column `q`, if there is one, and close it."""
    every = np.arange(len(cost))
    chosen = cost.argmin(axis=1)
    there = np.isfinite(cost[every, chosen])
    picks[:, q] = np.where(there, chosen, NOBODY)
    closing[every[there], chosen[there]] = np.inf
    return np.asarray(chosen)


def shortlist(context: SearchContext, state: Floats, start: Floats, together: bool = True) -> Shortlist:
    """Everything the copy can say about edits of `state`, rows that may already be changed; `start` (rows,) is the
    model's own margin there, or only its sign."""
    edits = _edits(context, state)
    copy = _Copy(context, edits, start)
    paid = context.distance.parts(state, context.domain.row)
    change = context.distance.single(edits.feature, edits.value, context.domain.row) - paid[:, edits.feature]
    change = np.where(edits.open, change, np.inf)
    expected, sets = copy.singles(), None
    if together and change.shape[1] > 1:
        sets, expected, change = _with_sets(copy, expected, change)
    empty = np.zeros(state.shape)
    price = np.round(change + paid.sum(axis=1)[:, None], 9)
    spare, rate = _shrinkable(context, copy, expected, change, sets)
    listed = Shortlist(edits, sets, expected, price, empty, empty.copy(), spare, rate)
    return listed if context.domain.unlinked else _by_the_rules(context, listed, copy.shift)


def _by_the_rules(context: SearchContext, listed: Shortlist, shift: Floats) -> Shortlist:
    """The list without sets that break rules between features, the others with all that follows from them."""
    domain, width = context.domain, listed.price.shape[1]
    size = max(1, MOST_COMPLETED // max(1, width * domain.row.shape[1]))
    expected, price = listed.expected.copy(), listed.price.copy()
    for start in range(0, len(price), size):
        rows = np.arange(start, min(start + size, len(price)))
        some, part = listed.take(rows), domain.take(rows)
        row, column = np.nonzero(np.isfinite(some.price))
        plain = some.flat(row, column)
        codes = part.complete_own(row, plain)
        moved = (codes != plain).any(axis=1)
        # What was not completed is legal feature by feature: it is made of legal edits.
        legal = part.links_kept(row, codes)
        legal[moved] &= part.each_legal(row[moved], codes[moved])
        moved = np.flatnonzero(legal & moved)
        price[start + row[~legal], column[~legal]] = np.inf
        if moved.size:
            row, column, codes = row[moved], column[moved], codes[moved]
            price[start + row, column] = context.distance.total(codes, part.row[row])
            expected[start + row, column] = _expected(context, start + row, codes) + shift[start + row]
    return replace(listed, expected=expected, price=price)


def _expected(context: SearchContext, rows: Indices, codes: Floats) -> Floats:
    surrogate = context.state.surrogate
    assert surrogate is not None
    found = [
        context.targets.take(rows[start : start + MOST_AT_ONCE]).expected(
            surrogate.outputs_of(codes[start : start + MOST_AT_ONCE][:, None])
        )[:, 0]
        for start in range(0, len(codes), MOST_AT_ONCE)
    ]
    return np.concatenate(found).astype(np.float64)


def _shrinkable(
    context: SearchContext, copy: "_Copy", expected: Floats, change: Floats, sets: Sets | None
) -> tuple[Floats, Floats]:
    """How much of a price is for numbers, and how much margin a unit of it buys."""
    feature, value = copy.edits.feature, copy.edits.value
    graded = context.distance.graded[feature]
    if context.distance.gap is not None:
        graded = graded & ~filled_or_emptied(value, context.domain.row[:, feature])
    count = len(feature)
    spare = np.where(graded & np.isfinite(change[:, :count]), np.maximum(change[:, :count], 0.0), 0.0)
    gain = np.where(spare > 0, np.maximum(expected[:, :count] - copy.start[:, None], 0.0), 0.0)
    if sets is not None:
        spare, gain = (
            np.concatenate([each, sets.add_up(np.take_along_axis(each, sets.option, 1))], axis=1) for each in (spare, gain)
        )
    return spare, np.maximum(gain / np.maximum(spare, 1e-9), 1e-9)


def rows_at_once(state: SearchState) -> int:
    """How many rows can be searched together in a few hundred megabytes."""
    options, features = len(SHARES) * EACH + 2 * (EACH // 2), len(state.codec.schema)
    singles = len(state.dense_levels[0]) + 3 * features
    listed = singles + options * (options - 1) // 2 + LEADERS * options
    return max(1, min(MOST_LISTED // listed, MOST_READ // features))


def expectations(context: SearchContext, edits: Edits, start: Floats) -> Floats:
    """The margins (rows, S) the copy foresees for single changes."""
    return _Copy(context, edits, start).singles()


def _edits(context: SearchContext, state: Floats) -> Edits:
    """The levels everyone may be offered, the ends of a row's own range, and, of a changed row, each feature as it was."""
    domain = context.domain
    listed = sweep.edits(domain, context.state.dense_levels)
    if state is domain.base:
        return listed
    feature = np.concatenate([listed.feature, np.arange(state.shape[1])])
    value = np.concatenate([listed.value, domain.base], axis=1)
    legal = np.concatenate([listed.open, np.ones(state.shape, dtype=bool)], axis=1)
    return Edits(state, feature, value, legal & (value != state[:, feature]))


def _with_sets(copy: "_Copy", alone: Floats, change: Floats) -> tuple[Sets, Floats, Floats]:
    """Pairs of the most useful options, and the best pairs that fall short with a third option."""
    feature, gain = copy.edits.feature, alone - copy.start[:, None]
    option = _options(feature, gain, change, copy.need)
    sets = Sets(option, np.zeros((len(option), 0, 2), dtype=np.intp))
    each, kind = np.take_along_axis(change, option, 1), feature[option]
    one, two = sets.pair
    of_pairs = copy.pairs(option)
    cost = np.where(kind[:, one] == kind[:, two], np.inf, each[:, one] + each[:, two])
    leaders = _almost(of_pairs, cost, _rate(gain, change))
    sets = Sets(option, np.stack([one[leaders], two[leaders]], axis=2))
    of_triples = copy.triples(option, sets.leaders)
    rows = np.arange(len(option))[:, None, None]
    again = (kind[:, None, :, None] == kind[rows, sets.leaders][:, :, None, :]).any(axis=3)
    again = again.reshape(len(option), again.shape[1] * again.shape[2])
    together = sets.add_up(each)
    together[:, : len(one)] = cost
    together[:, len(one) :][again] = np.inf
    return sets, np.concatenate([alone, of_pairs, of_triples], axis=1), np.concatenate([change, together], axis=1)


def _rate(gain: Floats, change: Floats) -> Floats:
    """The most margin that one unit of price buys, for every row."""
    bought = np.where(np.isfinite(change) & (change > 0), gain / np.maximum(change, 1e-3), 0.0)
    return np.asarray(np.maximum(bought.max(axis=1), 1e-9))


def _almost(reached: Floats, cost: Floats, rate: Floats) -> Indices:
    """Pairs, by what they would cost if what they lack (or have to spare) were bought (or sold) at the best rate."""
    hope = np.where(np.isfinite(cost), cost - reached / rate[:, None], np.inf)
    return np.argsort(hope, axis=1, kind="stable")[:, :LEADERS]


def _options(feature: Indices, gain: Floats, change: Floats, need: Floats) -> Indices:
    """Changes worth combining: for each share of what is needed the features that give it most cheaply, those that
    give most, and those that save most of the price by taking a change back."""
    there = np.isfinite(change)
    every = np.arange(len(gain))[:, None]
    merits = [(np.where(there & (gain >= share * need[:, None]), -change, -np.inf), EACH) for share in SHARES]
    merits += [(np.where(there & (gain > 0), gain, -np.inf), EACH // 2), (np.where(there, -change, -np.inf), EACH // 2)]
    best_of_each = _side_by_side(feature) if len(gain) < FEW_ROWS else _one_after_another(feature)
    chosen = []
    for merit, count in merits:
        best = best_of_each(merit)
        order = np.argsort(-merit[every, best], axis=1, kind="stable")[:, :count]
        chosen.append(np.take_along_axis(best, order, 1))
    return np.concatenate(chosen, axis=1)


def _one_after_another(feature: Indices) -> Callable[[Floats], Indices]:
    """The position of every feature's best edit, for many rows: feature by feature."""
    columns = [np.flatnonzero(feature == j) for j in np.unique(feature)]
    return lambda merit: np.stack([own[merit[:, own].argmax(axis=1)] for own in columns], axis=1)


def _side_by_side(feature: Indices) -> Callable[[Floats], Indices]:
    """The same for a few rows: all features at once, padded with their first edit."""
    order = np.argsort(feature, kind="stable")
    _, first, count = np.unique(feature[order], return_index=True, return_counts=True)
    place = np.arange(count.max(initial=0))
    column = order[first[:, None] + np.where(place < count[:, None], place, 0)]
    return lambda merit: np.asarray(column[np.arange(len(column)), merit[:, column].argmax(axis=2)])


class _Copy:
    """The surrogate over one context's edits, in chunks small enough for the processor's cache, on every core."""

    def __init__(self, context: SearchContext, edits: Edits, start: Floats) -> None:
        surrogate = context.state.surrogate
        assert surrogate is not None
        self.surrogate: Surrogate = surrogate
        self.edits, self.targets = edits, context.targets
        self.own = surrogate.read(edits.base, np.arange(edits.base.shape[1]))
        self.hidden = surrogate.hidden(self.own)
        self._read_entries()
        guess = self.targets.expected(surrogate.outputs(self.hidden[:, None].copy()))[:, 0].astype(np.float64)
        self.start = start if context.judge.informative else _on_its_side(guess, start, surrogate.error)
        self.shift = self.start - guess
        self.need = self._needed(context)

    def _read_entries(self) -> None:
        """Entries of values offered to everyone are read once, those that differ from row to row for each."""
        feature, value = self.edits.feature, self.edits.value
        shared = (value == value[:1]).all(axis=0)
        private = np.flatnonzero(~shared)
        self.entries = np.zeros((len(feature), self.hidden.shape[1]), dtype=np.float32)
        if len(value):
            self.entries[shared] = self.surrogate.read(value[0, shared], feature[shared])
        self.private = self.surrogate.read(value[:, private], feature[private])
        self.private_place = np.full(len(feature), NOBODY, dtype=np.intp)
        self.private_place[private] = np.arange(len(private))

    def _needed(self, context: SearchContext) -> Floats:
        """How much margin the whole way takes: from the row as it came to the boundary."""
        if context.start is None or not context.judge.informative:
            return np.maximum(np.abs(self.start), self.surrogate.error)
        return np.maximum(-context.start, 1e-9)

    def singles(self) -> Floats:
        private = np.flatnonzero(self.private_place >= 0)

        def states(rows: slice) -> Floats32:
            left = self.hidden[rows][:, None] - self.own[rows]
            hidden = np.take(left, self.edits.feature, axis=1)
            hidden += self.entries
            hidden[:, private] += self.private[rows]
            return np.asarray(hidden)

        return self._margins(len(self.edits.feature), lambda rows: self._lead(states(rows), rows))

    def pairs(self, option: Indices) -> Floats:
        """All pairs of a row's options, in the order of `np.triu_indices`."""
        count = option.shape[1]

        def margins(rows: slice) -> Floats:
            swap = self._swaps(rows, option[rows])
            first = swap + self.hidden[rows][:, None]
            parts = [self._lead(first[:, k, None] + swap[:, k + 1 :], rows) for k in range(count - 1)]
            return np.concatenate(parts, axis=1)

        return self._margins(count * (count - 1) // 2, margins, at_once=count)

    def triples(self, option: Indices, pairs: Indices) -> Floats:
        """Pairs (rows, L, 2), places among the options, each with every option."""
        count = option.shape[1]

        def margins(rows: slice) -> Floats:
            swap = self._swaps(rows, option[rows])
            every = np.arange(len(swap))
            parts = []
            for one, two in np.moveaxis(pairs[rows], 1, 0).swapaxes(1, 2):
                state = self.hidden[rows] + swap[every, one] + swap[every, two]
                parts.append(self._lead(state[:, None] + swap, rows))
            return np.concatenate(parts, axis=1)

        return self._margins(count * pairs.shape[1], margins, at_once=count)

    def _swaps(self, rows: slice, option: Indices) -> Floats32:
        """What each option adds to the hidden state: the new entry minus the old one (rows, O, H)."""
        every = np.arange(len(option))[:, None]
        swap = self.entries[option]
        place = self.private_place[option]
        row, column = np.nonzero(place >= 0)
        swap[row, column] = self.private[rows][row, place[row, column]]
        swap -= self.own[rows][every, self.edits.feature[option]]
        return np.asarray(swap)

    def _lead(self, hidden: Floats32, rows: slice) -> Floats32:
        return self.targets.take(rows).expected(self.surrogate.outputs(hidden))

    def _margins(self, count: int, lead: Callable[[slice], Any], at_once: int | None = None) -> Floats:
        margin = np.empty((len(self.hidden), count))
        size = max(1, CHUNK_CELLS // max(1, (at_once or count) * self.hidden.shape[1]))

        def fill(start: int) -> None:
            rows = slice(start, start + size)
            margin[rows] = lead(rows)

        with on_one_thread():
            spread(fill, range(0, len(self.hidden), size))
        return np.asarray(margin + self.shift[:, None])


def _on_its_side(guess: Floats, sign: Floats, error: float) -> Floats:
    """Where the model tells labels only: the copy's margin, but on the side of the boundary the model says."""
    return np.where(sign > 0, np.maximum(guess, LITTLE * error), np.minimum(guess, -LITTLE * error))
