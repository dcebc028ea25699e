"""Rank before asking: what the distilled copy expects of every single change, of pairs and of triples, at no question.

Only the few that look best go to the model; its answers correct what is expected of the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fasterce.codec import Codec
from fasterce.latent.runtime import on_one_thread
from fasterce.profile import Floats
from fasterce.search import sweep
from fasterce.search.judge import Candidates, Edits, Indices, Verdict
from fasterce.search.task import Task
from fasterce.surrogate.runtime import Singles32, Surrogate

SHARES = (0.2, 0.4, 0.6, 0.8)
EACH = 5
LEADERS = 4
LARGEST = 3
CHUNK_CELLS = 250_000
NOBODY = -1
LITTLE = 0.1

States = Callable[[slice], Singles32]


@dataclass
class Shortlist:
    """Sets of up to three edits of every row: `members` (rows, K, 3) are positions in `edits`, -1 for none.

    `expected` (rows, K) is the margin the copy foresees, `price` what the set costs (inf: not open or already asked),
    `off` (rows, features) how far it was wrong so far where a feature took part.
    """

    edits: Edits
    members: Indices
    expected: Floats
    price: Floats
    off: Floats
    weight: Floats

    def of_size(self, size: int) -> "Shortlist":
        """Only the sets of so many changes."""
        kept = (self.members[0] >= 0).sum(axis=1) == size if len(self.members) else np.zeros(self.price.shape[1], dtype=bool)
        return replace(self, members=self.members[:, kept], expected=self.expected[:, kept], price=self.price[:, kept])

    def take(self, rows: Indices) -> "Shortlist":
        return Shortlist(
            self.edits.take(rows),
            self.members[rows],
            self.expected[rows],
            self.price[rows],
            self.off[rows],
            self.weight[rows],
        )

    def margin(self) -> Floats:
        """What is expected now: the copy's guess, corrected by what the model said about the same features."""
        if not self.weight.any():
            return self.expected
        mean = self.off / np.maximum(self.weight, 1.0)
        padded = np.concatenate([mean, np.zeros((len(mean), 1))], axis=1)
        feature = np.append(self.edits.feature, padded.shape[1] - 1)[self.members]
        rows = np.arange(len(mean))[:, None, None]
        return np.asarray(self.expected + padded[rows, feature].sum(axis=2))

    def cheapest(self, margin: Floats, safety: Sequence[float], ceiling: Floats) -> Indices:
        """For each level of safety the cheapest set expected to reach it, all different; -1 where there is none."""
        price = np.where(self.price < ceiling[:, None], self.price, np.inf)
        picks = np.full((len(price), len(safety)), NOBODY, dtype=np.intp)
        if price.shape[1] == 0:
            return picks
        for q, level in enumerate(safety):
            _take(picks, q, np.where(margin >= level, price, np.inf), price)
        return picks

    def surest(self, margin: Floats, count: int, taken: Indices) -> Indices:
        """The smallest sets that are expected to lead by most, each of another feature than the last."""
        rows = len(margin)
        picks = np.full((rows, count), NOBODY, dtype=np.intp)
        if rows == 0 or margin.shape[1] == 0:
            return picks
        worth = np.where(np.isfinite(self.price), -margin, np.inf)
        size = (self.members[0] >= 0).sum(axis=1)
        worth[:, size > size.min()] = np.inf
        every = np.arange(rows)
        for q in range(taken.shape[1]):
            there = taken[:, q] >= 0
            worth[every[there], taken[there, q]] = np.inf
        first = self.edits.feature[self.members[:, :, 0]]
        for q in range(count):
            chosen = _take(picks, q, worth, worth)
            worth[first == first[every, chosen][:, None]] = np.inf
        return picks

    def codes(self, picks: Indices) -> Candidates:
        """The chosen sets as candidates."""
        rows = np.arange(len(picks))[:, None]
        codes = np.repeat(self.edits.base[:, None, :], picks.shape[1], axis=1)
        place = np.broadcast_to(np.arange(picks.shape[1]), picks.shape)
        for member in np.moveaxis(self.members[rows, picks], 2, 0):
            feature = self.edits.feature[member]
            value = np.where(member >= 0, self.edits.value[rows, member], codes[rows, place, feature])
            codes[rows, place, feature] = value
        return Candidates(codes, picks >= 0)

    def learn(self, picks: Indices, verdict: Verdict, margin: Floats, informative: bool) -> None:
        """Close what was asked, and note for its features by how much the guess was off."""
        rows = np.broadcast_to(np.arange(len(picks))[:, None], picks.shape)
        asked = (picks >= 0) & np.isfinite(verdict.margin)
        guess = margin[rows, picks]
        truth = verdict.margin if informative else np.where(verdict.valid, np.maximum(guess, 0.0), np.minimum(guess, 0.0))
        self.price[rows[picks >= 0], picks[picks >= 0]] = np.inf
        members = self.members[rows, picks]
        share = np.where(asked, truth - guess, 0.0) / np.maximum((members >= 0).sum(axis=2), 1)
        for member in np.moveaxis(members, 2, 0):
            used = asked & (member >= 0)
            place = (rows[used], self.edits.feature[member[used]])
            np.add.at(self.off, place, share[used])
            np.add.at(self.weight, place, 1.0)


def _take(picks: Indices, q: int, cost: Floats, closing: Floats) -> Indices:
    """Put the cheapest of every row in column `q`, if there is one, and close it."""
    every = np.arange(len(cost))
    chosen = cost.argmin(axis=1)
    there = np.isfinite(cost[every, chosen])
    picks[:, q] = np.where(there, chosen, NOBODY)
    closing[every[there], chosen[there]] = np.inf
    return np.asarray(chosen)


def shortlist(task: Task, state: Floats, start: Floats, together: bool = True) -> Shortlist:
    """Everything the copy can say about edits of `state`, rows that may already be changed; `start` (rows,) is the
    model's own margin there, or only its sign."""
    edits = _edits(task, state)
    copy = _Copy(task, edits, start)
    paid = task.distance.parts(state, task.domain.row)
    change = task.distance.single(edits.feature, edits.value, task.domain.row) - paid[:, edits.feature]
    change = np.where(edits.open, change, np.inf)
    expected = copy.singles()
    rows, count = change.shape
    members = np.full((rows, count, LARGEST), NOBODY, dtype=np.intp)
    members[:, :, 0] = np.arange(count)
    if together and count > 1:
        members, expected, change = _with_sets(copy, members, expected, change)
    empty = np.zeros(state.shape)
    price = np.round(change + paid.sum(axis=1)[:, None], 9)
    return Shortlist(edits, members, expected, price, empty, empty.copy())


def width(codec: Codec) -> int:
    """About how many candidates of a row are weighed at once."""
    features = len(codec.schema)
    options = len(SHARES) * EACH + 2 * (EACH // 2)
    return len(sweep.dense_levels(codec)[0]) + 3 * features + options * (options - 1) // 2 + LEADERS * options


def expectations(task: Task, edits: Edits, start: Floats) -> Floats:
    """The margins (rows, S) the copy foresees for single changes."""
    return _Copy(task, edits, start).singles()


def _edits(task: Task, state: Floats) -> Edits:
    """The levels everyone may be offered, the ends of a row's own range, and each feature as it was."""
    domain = task.domain
    listed = sweep.edits(domain, sweep.dense_levels(task.knowledge.codec))
    features = np.arange(state.shape[1])
    feature = np.concatenate([listed.feature, features])
    value = np.concatenate([listed.value, domain.base], axis=1)
    legal = np.concatenate([listed.open, np.ones(state.shape, dtype=bool)], axis=1)
    return Edits(state, feature, value, legal & (value != state[:, feature]))


def _with_sets(copy: "_Copy", members: Indices, alone: Floats, change: Floats) -> tuple[Indices, Floats, Floats]:
    """Pairs of the most useful options, and the best pairs that fall short with a third option."""
    option = _options(copy.edits.feature, alone - copy.start[:, None], change, copy.need)
    one, two = np.triu_indices(option.shape[1], k=1)
    pairs = np.stack([option[:, one], option[:, two]], axis=2)
    of_pairs = copy.sets(pairs)
    cost = _cost(copy.edits.feature, change, pairs)
    leaders = _almost(of_pairs, cost, _rate(alone - copy.start[:, None], change))
    triples = np.concatenate(
        [
            np.repeat(np.take_along_axis(pairs, leaders[:, :, None], 1), option.shape[1], axis=1),
            np.tile(option, (1, leaders.shape[1]))[:, :, None],
        ],
        axis=2,
    )
    of_triples = copy.sets(triples)
    padded = np.concatenate([pairs, np.full((*pairs.shape[:2], 1), NOBODY)], axis=2)
    return (
        np.concatenate([members, padded, triples], axis=1),
        np.concatenate([alone, of_pairs, of_triples], axis=1),
        np.concatenate([change, cost, _cost(copy.edits.feature, change, triples)], axis=1),
    )


def _rate(gain: Floats, change: Floats) -> Floats:
    """The most margin that one unit of price buys, for every row."""
    bought = np.where(np.isfinite(change) & (change > 0), gain / np.maximum(change, 1e-3), 0.0)
    return np.maximum(bought.max(axis=1), 1e-9)


def _almost(reached: Floats, cost: Floats, rate: Floats) -> Indices:
    """Pairs, by what they would cost if what they lack (or have to spare) were bought (or sold) at the best rate."""
    hope = np.where(np.isfinite(cost), cost - reached / rate[:, None], np.inf)
    return np.argsort(hope, axis=1, kind="stable")[:, :LEADERS]


def _cost(feature: Indices, change: Floats, sets: Indices) -> Floats:
    """What sets of options cost together; two changes of one feature are no set."""
    rows = np.arange(len(change))[:, None]
    parts = feature[sets]
    cost = sum(change[rows, sets[:, :, k]] for k in range(sets.shape[2]))
    repeated = (parts[:, :, :1] == parts[:, :, 1:]).any(axis=2) | ((parts[:, :, 1] == parts[:, :, -1]) & (parts.shape[2] > 2))
    return np.asarray(np.where(repeated, np.inf, cost))


def _options(feature: Indices, gain: Floats, change: Floats, need: Floats) -> Indices:
    """Changes worth combining: for each share of what is needed the features that give it most cheaply, those that
    give most, and those that save most of the price by taking a change back."""
    there = np.isfinite(change)
    every = np.arange(len(gain))[:, None]
    merits = [(np.where(there & (gain >= share * need[:, None]), -change, -np.inf), EACH) for share in SHARES]
    merits += [(np.where(there & (gain > 0), gain, -np.inf), EACH // 2), (np.where(there, -change, -np.inf), EACH // 2)]
    chosen = []
    for merit, count in merits:
        best = _best_of_each_feature(feature, merit)
        order = np.argsort(-merit[every, best], axis=1, kind="stable")[:, :count]
        chosen.append(np.take_along_axis(best, order, 1))
    return np.concatenate(chosen, axis=1)


def _best_of_each_feature(feature: Indices, merit: Floats) -> Indices:
    best = []
    for j in np.unique(feature):
        columns = np.flatnonzero(feature == j)
        best.append(columns[merit[:, columns].argmax(axis=1)])
    return np.stack(best, axis=1)


class _Copy:
    """The surrogate over one task's edits, in chunks small enough for the processor's cache."""

    def __init__(self, task: Task, edits: Edits, start: Floats) -> None:
        surrogate = task.knowledge.surrogate
        assert surrogate is not None
        self.surrogate: Surrogate = surrogate
        self.edits, self.target = edits, task.judge.target
        features = np.arange(edits.base.shape[1])
        self.own = surrogate.read(edits.base, features)
        self.hidden = surrogate.hidden(self.own)
        first = edits.value[:1]
        self.shared = (edits.value == first).all(axis=0) if len(first) else np.zeros(len(edits.feature), dtype=bool)
        self.entries = surrogate.read(first[0], edits.feature) if len(first) else np.zeros((0, 0), dtype=np.float32)
        guess = surrogate.margins(surrogate.outputs(self.hidden[:, None].copy()), self.target)[:, 0].astype(np.float64)
        self.start = start if task.judge.informative else _on_its_side(guess, start, surrogate.error)
        self.shift = self.start - guess
        self.need = self._needed(task)

    def _needed(self, task: Task) -> Floats:
        """How much margin the whole way takes: from the row as it came to the boundary."""
        if task.start is None or not task.judge.informative:
            return np.maximum(np.abs(self.start), self.surrogate.error)
        return np.maximum(-task.start, 1e-9)

    def singles(self) -> Floats:
        return self._margins(len(self.edits.feature), lambda rows: self._swap(rows, None))

    def sets(self, sets: Indices) -> Floats:
        def states(rows: slice) -> Singles32:
            hidden = self.hidden[rows][:, None]
            for k in range(sets.shape[2]):
                hidden = hidden + self._swap(rows, sets[rows, :, k])
            return hidden

        return self._margins(sets.shape[1], states)

    def _swap(self, rows: slice, chosen: Indices | None) -> Singles32:
        """The new entries minus the old ones; of all edits, added to the hidden state, or of the chosen ones."""
        own = self.own[rows]
        if chosen is None:
            entries = np.broadcast_to(self.entries, (len(own), *self.entries.shape)).copy()
            self._private(rows, entries)
            entries -= own[:, self.edits.feature]
            entries += self.hidden[rows][:, None]
            return entries
        every = np.arange(len(own))[:, None]
        entries = self.entries[chosen]
        private = ~self.shared[chosen]
        if private.any():
            place = np.nonzero(private)
            edit = chosen[private]
            value = self.edits.value[rows][place[0], edit]
            entries[private] = self._read_each(value, self.edits.feature[edit])
        entries -= own[every, self.edits.feature[chosen]]
        return np.asarray(entries)

    def _private(self, rows: slice, entries: Singles32) -> None:
        """Entries of values that are not the same for everyone, such as the ends of a row's own range."""
        columns = np.flatnonzero(~self.shared)
        if columns.size:
            entries[:, columns] = self.surrogate.read(self.edits.value[rows][:, columns], self.edits.feature[columns])

    def _read_each(self, value: Floats, feature: Indices) -> Singles32:
        found = np.empty((len(value), self.entries.shape[1]), dtype=np.float32)
        for j in np.unique(feature):
            mine = feature == j
            found[mine] = self.surrogate.read(value[mine][:, None], np.array([j]))[:, 0]
        return found

    def _margins(self, count: int, states: States) -> Floats:
        margin = np.empty((len(self.hidden), count))
        with on_one_thread():
            for rows in self._chunks(count):
                outputs = self.surrogate.outputs(states(rows))
                margin[rows] = self.surrogate.margins(outputs, self.target[rows])
        return np.asarray(margin + self.shift[:, None])

    def _chunks(self, count: int) -> Iterator[slice]:
        size = max(1, CHUNK_CELLS // max(1, count * self.hidden.shape[1]))
        return (slice(start, start + size) for start in range(0, len(self.hidden), size))


def _on_its_side(guess: Floats, sign: Floats, error: float) -> Floats:
    """Where the model tells labels only: the copy's margin, but on the side of the boundary the model says."""
    return np.where(sign > 0, np.maximum(guess, LITTLE * error), np.minimum(guess, -LITTLE * error))
