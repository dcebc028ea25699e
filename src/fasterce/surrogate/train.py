"""Distil the model into a small network: ask it about real rows and edits of them, fit tables and one hidden layer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Layer
from fasterce.latent.train import layer, one_thread, torch_or_none
from fasterce.profile import Floats
from fasterce.schema import MISSING
from fasterce.surrogate.knots import at_bends, quantile_knots
from fasterce.surrogate.runtime import Surrogate

HIDDEN = 96
EDITED_A_FEATURE, FEWEST_EDITED, MOST_EDITED = 5_000, 15_000, 80_000
MOST_EDITS = 3
HELD_OUT = 4_000
STEPS_A_FEATURE, FEWEST_STEPS, MOST_STEPS = 100, 400, 1200
BATCH = 512
LEARNING_RATE = 1e-2
LABEL_ERROR, TINY = 1.0, 1e-6
MADE_MISSING = 0.2
NO_LIMIT = -1e300
NOTHING, OFTEN = np.log(1e-12) + 1e-6, 0.02

Indices = NDArray[np.intp]


def edited_rows(
    codes: Floats, classes: Indices, codec: Codec, rng: np.random.Generator, bends: Sequence[Floats] = ()
) -> Floats:
    """Rows of every class as often, with one to three features changed: to another person's value, to one anywhere in
    the range or where the model bends, to any category."""
    count = int(np.clip(EDITED_A_FEATURE * codes.shape[1], FEWEST_EDITED, MOST_EDITED))
    seen = np.unique(classes[classes >= 0])
    anchors = [rng.choice(np.flatnonzero(classes == label), count) for label in seen]
    base = codes[np.stack(anchors, axis=1).reshape(-1)[:count]].copy()
    edits = rng.integers(1, MOST_EDITS + 1, size=count)
    for turn in range(MOST_EDITS):
        feature = rng.integers(codes.shape[1], size=count)
        value = codes[rng.integers(len(codes), size=count), feature]
        elsewhere = rng.random(count) < 0.5
        value = np.where(elsewhere, _anywhere(codec, feature, rng), value)
        value = at_bends(bends, feature, value, rng) if any(map(len, bends)) else value
        now = np.flatnonzero(turn < edits)
        base[now, feature[now]] = value[now]
    return np.asarray(base)


def _anywhere(codec: Codec, feature: Indices, rng: np.random.Generator) -> Floats:
    """A value over the whole range of a number, now and then none where it may be missing; any category someone has."""
    place = rng.random(len(feature))
    spread = codec.profile.spread
    value = spread[feature, (place * spread.shape[1]).astype(np.intp)]
    for j in codec.numeric:
        declared = codec.schema.features[j]
        if declared.declared:
            mine = (feature == j) & (rng.random(len(feature)) < 0.3)
            low, high = max(declared.lower, -1e100), min(declared.upper, 1e100)
            value[mine] = np.round(low + place[mine] * (high - low), declared.decimals)
    for j in codec.gappy:
        value[(feature == j) & (rng.random(len(feature)) < MADE_MISSING)] = MISSING
    for j, held in codec.held.items():
        mine = feature == j
        value[mine] = held[(place[mine] * len(held)).astype(np.intp)]
    return np.asarray(value)


def lowest_score(scores: Floats | None) -> float:
    """Averages of trees are often exactly 0, and no logarithm of that means anything: then half the smallest chance seen
    is as low as it gets."""
    if scores is None or not len(scores):
        return NO_LIMIT
    nothing = scores <= NOTHING
    often = float(nothing.any(axis=1).mean()) > OFTEN
    return float(np.where(nothing, np.inf, scores).min() - np.log(2.0)) if often and not nothing.all() else NO_LIMIT


def leads(answers: Any, classes: int, lowest: float = NO_LIMIT) -> Floats:
    """What the network learns: log-odds of two classes, centred scores of several, or the labels as ±1 targets."""
    if answers.scores is None:
        truth = np.where(answers.classes[:, None] == np.arange(classes), 1.0, -1.0)
        return np.asarray(truth[:, 1:2] if classes == 2 else truth)
    scores = np.maximum(answers.scores, lowest)
    return np.asarray(scores[:, 1:2] - scores[:, :1] if classes == 2 else scores - scores.mean(axis=1, keepdims=True))


def distil(
    codes: Floats,
    answers: Any,
    codec: Codec,
    classes: int,
    seed: int,
    lowest: float = NO_LIMIT,
    bends: Sequence[Floats] = (),
) -> Surrogate | None:
    """None where PyTorch is missing: the search then asks the model instead."""
    torch = torch_or_none()
    usable = np.flatnonzero(answers.classes >= 0)
    if torch is None or len(usable) < BATCH:
        return None
    usable = np.random.default_rng(seed).permutation(usable)
    tables = _Tables(codec, bends)
    truth = leads(answers, classes, lowest)[usable]
    scored = answers.scores is not None
    scale = float(truth.std()) or 1.0 if scored else 1.0
    held = min(HELD_OUT, len(usable) // 5)
    with torch.random.fork_rng(devices=[]), one_thread(torch):
        torch.manual_seed(seed)
        first, last = _descend(torch, tables, codes[usable[held:]], truth[held:] / scale, scored)
    surrogate = Surrogate(
        knots=tables.knots,
        entries=tables.fold(first.weight.astype(np.float32)),
        start=tables.start,
        numeric=tables.numeric,
        bias=first.bias.astype(np.float32),
        weight=(last.weight * scale).astype(np.float32),
        offset=(last.bias * scale).astype(np.float32),
        error=0.0,
        agreement=0.0,
    )
    return _measured(surrogate, codes[usable[:held]], truth[:held], scored)


class _Tables:
    """Where the knots lie, and rows as weights on them."""

    def __init__(self, codec: Codec, bends: Sequence[Floats] = ()) -> None:
        self.codec = codec
        self.numeric = np.array([feature.numeric for feature in codec.schema.features])
        values = quantile_knots(codec)
        for j in codec.numeric if len(bends) else ():
            values[j] = np.union1d(values[j], bends[j])
        self.knots = np.concatenate(values)
        self.start = np.concatenate([[0], np.cumsum([len(some) for some in values])]).astype(np.int64)

    def places(self, codes: Floats) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """For every value the entry at or below it, the share of the next one, and numbers on the codec's bent scale."""
        below = np.empty(codes.shape, dtype=np.int64)
        share = np.zeros(codes.shape, dtype=np.float32)
        for j, numeric in enumerate(self.numeric):
            first, end = self.start[j], self.start[j + 1]
            if not numeric:
                below[:, j] = codes[:, j].astype(np.int64)
            else:
                knots = self.knots[first:end]
                below[:, j] = place = np.clip(
                    np.searchsorted(knots, codes[:, j], side="right") - 1, 0, max(0, len(knots) - 2)
                )
                width = knots[np.minimum(place + 1, len(knots) - 1)] - knots[place]
                share[:, j] = np.clip((codes[:, j] - knots[place]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
            below[:, j] += first
        bent = self.codec.encode(codes)[:, : len(self.codec.numeric)].astype(np.float32)
        return below, share, bent

    def fold(self, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        """Entries (E, H) from the first layer's weight (E + numbers, H): the bent scale is folded in at the knots."""
        entries = weight[: len(self.knots)].copy()
        rows = np.repeat(self.codec.profile.median[None, :], len(self.knots), axis=0)
        for column, j in enumerate(self.codec.numeric):
            mine = slice(self.start[j], self.start[j + 1])
            rows[mine, j] = self.knots[mine]
            bent = self.codec.encode(_any_categories(rows[mine], self.codec))[:, column]
            entries[mine] += bent[:, None].astype(np.float32) * weight[len(self.knots) + column]
        return entries


def _any_categories(rows: Floats, codec: Codec) -> Floats:
    rows = rows.copy()
    rows[:, codec.categorical] = 0.0
    return rows


def _descend(torch: Any, tables: _Tables, codes: Floats, truth: Floats, scored: bool) -> tuple[Layer, Layer]:
    below, share, bent = (torch.from_numpy(part) for part in tables.places(codes))
    target = torch.from_numpy(truth.astype(np.float32))
    width, functional = len(tables.knots), torch.nn.functional
    hidden = torch.nn.Linear(width + bent.shape[1], HIDDEN)
    output = torch.nn.Linear(HIDDEN, truth.shape[1])
    parameters = [*hidden.parameters(), *output.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE / 2)
    steps = int(np.clip(STEPS_A_FEATURE * codes.shape[1], FEWEST_STEPS, MOST_STEPS))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    order = torch.cat([torch.randperm(len(codes)) for _ in range(steps * BATCH // len(codes) + 1)])
    above = torch.clamp(below + 1, max=width - 1)
    for step in range(steps):
        batch = order[step * BATCH : (step + 1) * BATCH]
        rows = torch.zeros(len(batch), width).scatter_(1, below[batch], 1 - share[batch])
        rows.scatter_add_(1, above[batch], share[batch])
        found = output(torch.relu(hidden(torch.cat([rows, bent[batch]], dim=1))))
        wanted = target[batch]
        loss = functional.huber_loss(found, wanted) if scored else functional.softplus(-found * wanted).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return layer(hidden), layer(output)


def _measured(surrogate: Surrogate, codes: Floats, truth: Floats, scored: bool) -> Surrogate:
    """How far off it is on rows it did not learn from, near the boundary above all."""
    own = surrogate.read(codes, np.arange(codes.shape[1]))
    found = surrogate.outputs(surrogate.hidden(own)[:, None])[:, 0]
    if truth.shape[1] == 1:
        same, lead, off = (found > 0) == (truth > 0), np.abs(truth), np.abs(found - truth)
    else:
        same = found.argmax(axis=1) == truth.argmax(axis=1)
        two = np.sort(truth, axis=1)[:, -2:]
        lead, off = (two[:, 1] - two[:, 0])[:, None], np.abs(found - truth).max(axis=1, keepdims=True)
    near = lead <= np.median(lead)
    error = float(1.48 * np.median(off[near])) if scored else LABEL_ERROR
    return replace(surrogate, error=max(error, TINY), agreement=float(np.mean(same)))
