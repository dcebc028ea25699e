"""Corrections of an inexact scorer, query by query, from rows whose true margins are known."""

import math

import numpy as np

from fasterce.kernels.arrays import Queries, Scorer
from fasterce.kernels.basics import fill
from fasterce.kernels.jit import compiled
from fasterce.kernels.score import WITHIN, margin_of, outputs
from fasterce.kernels.structs import as_struct
from fasterce.typing import Floats

# Smoothing of the corrections: below 1, the first deviation of a feature counts for most of its correction.
RIDGE = 0.3
SWEEPS = 10


@compiled
def lead_by(scorer: Scorer, queries: Queries, q: int, out: Floats) -> float:
    """Return the margin of a row from its outputs; for a target within bounds, the number these bounds are about."""
    if queries.kind == WITHIN:
        return margin_of(scorer, out, queries.kind, queries.label[q], 0.0, math.inf, queries.lowest)
    return margin_of(scorer, out, queries.kind, queries.label[q], 0.0, 0.0, queries.lowest)


@compiled
def write_deviations(scorer: Scorer, queries: Queries, q: int, out: Floats, lead: Floats, graded: bool, off: Floats) -> None:
    """Write by how much the scorer is off for each row beyond what it is off for the query; 0 for rows without a lead."""
    for m in range(len(lead)):
        off[m] = 0.0
        if math.isfinite(lead[m]):
            guess = lead_by(scorer, queries, q, out[m]) + queries.shift[q]
            if graded:
                off[m] = lead[m] - guess
            elif (lead[m] > 0.0) != (guess > 0.0):
                off[m] = -guess


@compiled
def distribute(queries: Queries, q: int, codes: Floats, lead: Floats, off: Floats) -> None:
    """Divide deviations among the changed features of their rows by ridge regression, feature after feature."""
    base, correction = queries.base[q], queries.correction[q]
    fill(correction, 0.0)
    for _ in range(SWEEPS):
        for j in range(len(base)):
            total, count = 0.0, 0
            for m in range(len(codes)):
                if math.isfinite(lead[m]) and codes[m, j] != base[j]:
                    total += off[m] + correction[j]
                    count += 1
            if count == 0:
                continue
            change = total / (count + RIDGE) - correction[j]
            correction[j] += change
            for m in range(len(codes)):
                if codes[m, j] != base[j]:
                    off[m] -= change


@compiled
def correct_queries(
    scorer: Scorer, queries: Queries, start: Floats, own: Floats, codes: Floats, out: Floats, lead: Floats, graded: bool,
    off: Floats,
) -> None:  # fmt: skip
    """Write the corrections of all queries."""
    for q in range(len(start)):
        guess = lead_by(scorer, queries, q, own[q])
        queries.shift[q] = start[q] - guess if graded else min(-guess, 0.0)
        write_deviations(scorer, queries, q, out[q], lead[q], graded, off)
        distribute(queries, q, codes[q], lead[q], off)


def correct(scorer: Scorer, queries: Queries, start: Floats, codes: Floats, lead: Floats, graded: bool) -> None:
    """Write to `shift` and `correction` of the queries what makes the scorer right for known rows.

    Parameters
    ----------
    scorer : Scorer
    queries : Queries
    start : ndarray of shape (queries,)
        The true leads of the queries.
    codes, lead : ndarray of shape (queries, M, features) and (queries, M)
        Further rows per query and their true leads; those that are not finite are passed over.
    graded : bool
        Whether leads are graded, or only their sign is known.
    """
    codes = np.require(codes, np.float64, ["C", "W"])
    lead, start = np.require(lead, np.float64, ["C", "W"]), np.require(start, np.float64, ["C", "W"])
    out = outputs(scorer, codes.reshape(-1, queries.row.shape[1])).reshape(*lead.shape, scorer.outputs)
    own = outputs(scorer, queries.row)
    correct_queries(as_struct(scorer), as_struct(queries), start, own, codes, out, lead, graded, np.zeros(lead.shape[1]))
