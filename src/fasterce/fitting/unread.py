"""Find the columns a model does not read: other values in one column change no prediction."""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pandas as pd

from fasterce.config import FitConfig
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.data.table import PassthroughColumn, Table
from fasterce.models.predictions import FAILED, Evaluate, Predictions
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats, Indices, Mask, Objects


def find_unread(evaluate: Evaluate, codec: Codec, codes: Floats, config: FitConfig) -> Mask:
    """Return which features the model never reads.

    Every feature gets other values in a few rows, one feature at a time; those without an effect are tried again in more
    rows. A difference of scores below `probe_tolerance` counts as none. If no feature has an effect, nothing is known.

    Parameters
    ----------
    evaluate : callable
        The model, or the compiled model, from codes to predictions.
    codes : ndarray of shape (rows, features)
        Rows to change: training rows, or those of `at_boundary`.

    Returns
    -------
    ndarray of bool, shape (features,)
    """
    values = [_other_values(codec, j, config.probe_values) for j in range(codes.shape[1])]
    unread = np.array([len(known) > 1 for known in values])
    for rows in config.probe_rows:
        left = np.flatnonzero(unread)
        values_left = sum(len(values[j]) for j in left)
        most = min(len(codes), config.probe_most_rows // max(1, values_left + 1))
        if not len(left) or not most:
            # Without a row to probe, nothing is known.
            return unread & (most > 0)
        some = codes[evenly_spaced(len(codes), min(rows, most))]
        for part in np.array_split(left, max(1, values_left * len(some) // config.probe_batch_rows)):
            unread[part] &= ~_effects(evaluate, some, [(int(j), values[j]) for j in part], config.probe_tolerance)
    return unread & ~unread.all()


def _other_values(codec: Codec, j: int, most: int) -> Floats:
    if not codec.schema.features[j].numeric:
        return codec.observed[j][evenly_spaced(len(codec.observed[j]), most)].astype(np.float64)
    levels = np.unique(codec.profile.spread[j])
    return levels[evenly_spaced(len(levels), most)]


def _effects(evaluate: Evaluate, rows: Floats, probes: list[tuple[int, Floats]], tolerance: float) -> Mask:
    """Return for each probed feature whether any of its values changes a prediction; all are evaluated in one call."""
    edited = [rows]
    for j, values in probes:
        block = np.repeat(rows, len(values), axis=0)
        block[:, j] = np.tile(values, len(rows))
        edited.append(block)
    found, start, effects = evaluate(np.concatenate(edited)), len(rows), []
    base = found.take(slice(0, len(rows)))
    for _, values in probes:
        end = start + len(rows) * len(values)
        same = np.repeat(np.arange(len(rows)), len(values))
        effects.append(_differ(base.take(same), found.take(slice(start, end)), tolerance))
        start = end
    return np.array(effects)


def _differ(some: Predictions, others: Predictions, tolerance: float) -> bool:
    known = (some.classes != FAILED) & (others.classes != FAILED)
    if some.scores is None or others.scores is None:
        return bool((some.classes != others.classes)[known].any())
    gap = np.abs(some.scores - others.scores)[known]
    return bool((gap > tolerance * np.maximum(1.0, np.abs(some.scores[known]))).any())


def at_boundary(evaluate: Evaluate, codes: Floats, classes: Indices, codec: Codec, config: FitConfig) -> Floats:
    """Return training rows moved towards rows of other classes as far as they keep their own: where only labels are known,
    a small effect is seen at the decision boundary. No rows if all have the same class."""
    sections, calls = config.probe_sections, config.probe_section_calls
    some = evenly_spaced(len(codes), min(config.probe_boundary_rows, config.probe_most_rows // (sections * calls)))
    rows, own = codes[some], classes[some]
    if len(np.unique(own)) < 2:
        return rows[:0]
    others = np.empty_like(rows)
    for one in np.unique(own):
        here, there = np.flatnonzero(own == one), rows[own != one]
        others[here] = there[np.arange(len(here)) % len(there)]
    reached, steps = np.zeros(len(rows)), np.arange(1, sections) / sections
    for width in (1 / sections) ** np.arange(calls):
        shares = reached[:, None] + width * steps
        between = _between(rows[:, None], others[:, None], shares[..., None], codec)
        found = evaluate(between.reshape(-1, rows.shape[1])).classes.reshape(shares.shape)
        kept = np.logical_and.accumulate(found == own[:, None], axis=1).sum(axis=1)
        reached += width * kept / sections
    return _between(rows, others, reached[:, None], codec)


def _between(rows: Floats, others: Floats, share: Floats, codec: Codec) -> Floats:
    """Return rows moved by a share of the way to others; what is no number takes the other value, one after another."""
    number = np.isin(np.arange(rows.shape[-1]), codec.numeric) & (rows != MISSING) & (others != MISSING)
    differ = (rows != others) & ~number
    place = differ.cumsum(axis=-1) / (differ.sum(axis=-1, keepdims=True) + 1)
    return np.where(number, rows + share * (others - rows), np.where(differ & (share >= place), others, rows))


def mark_read(predictor: Predictor, frame: pd.DataFrame, keep_rows: bool, config: FitConfig) -> Table:
    """Return the predictor's table with the passthrough columns marked that the model reads.

    A column is probed by giving all rows its first value. A model that fails on that reads the column too. The columns that
    are read get the values of the row with which the model predicts the classes most evenly, so that both sides of its
    decision are seen in `fit`. Without `keep_rows`, no value of a row is kept.
    """
    table = predictor.table
    if not table.passthrough:
        return table
    rows = frame[list(table.columns)].iloc[evenly_spaced(len(frame), config.probe_rows[0])].reset_index(drop=True)
    base = predictor.outputs(rows)

    def probed(one: PassthroughColumn) -> PassthroughColumn:
        other = predictor.outputs(rows.assign(**{str(one.name): one.column(len(rows))}))
        return replace(one, read=base is not None and (other is None or _outputs_differ(base, other, config.probe_tolerance)))

    table = replace(table, passthrough=tuple(map(probed, table.passthrough)))
    if not keep_rows:
        constant = {one.name for one in table.passthrough if frame[one.name].nunique(dropna=False) == 1}
        passed = [one if one.name in constant else replace(one, value=one.neutral) for one in table.passthrough]
        return replace(table, passthrough=tuple(passed))
    return table.with_values_of(_most_even(predictor, rows, table.read_passthrough)) if table.read_passthrough else table


def _most_even(predictor: Predictor, rows: pd.DataFrame, read: list[Hashable]) -> pd.Series:
    """Return the row whose values of these columns, given to all rows, let the model predict the classes most evenly."""
    others = [name for name in rows.columns if name not in read]
    every, own = np.repeat(np.arange(len(rows)), len(rows)), np.tile(np.arange(len(rows)), len(rows))
    parts = {name: rows[name].take(own if name in others else every).reset_index(drop=True) for name in rows.columns}
    outputs = predictor.outputs(pd.DataFrame(parts, columns=rows.columns))
    if outputs is None:
        return rows.iloc[0]
    labels = outputs.argmax(axis=1) if outputs.ndim > 1 else outputs > 0 if outputs.dtype.kind == "f" else outputs
    share = [pd.Series(one).value_counts(normalize=True).max() for one in np.split(labels, len(rows))]
    return rows.iloc[int(np.argmin(share))]


def _outputs_differ(some: Objects, others: Objects, tolerance: float) -> bool:
    if some.dtype.kind == "f" and others.dtype.kind == "f":
        return bool((np.abs(some - others) > tolerance * np.maximum(1.0, np.abs(some))).any())
    return bool((some != others).any())


def evenly_spaced(count: int, most: int) -> Indices:
    """Return up to `most` positions below `count`, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.intp))
