"""All single changes of queries."""

import numpy as np

from fasterce.constraints.compile.domain import Domain
from fasterce.search.levels import Levels
from fasterce.typing import Floats


def single_edits(domain: Domain, levels: Levels) -> Floats:
    """Return each query (rows, S, features) with one feature at a level or at an end of its own range; the base where that is
    not legal."""
    feature, value = levels
    ends = domain.numeric
    numeric = np.isin(feature, ends)
    feature = np.concatenate([feature[numeric], ends, ends, feature[~numeric]])
    rows = len(domain.base)
    wanted = np.broadcast_to(value[numeric], (rows, int(numeric.sum())))
    numbers = np.concatenate([wanted, domain.lower[:, ends], domain.upper[:, ends]], axis=1)
    numbers = domain.round(numbers, feature[: numbers.shape[1]])
    codes = np.broadcast_to(value[~numeric], (rows, int((~numeric).sum())))
    values = np.concatenate([numbers, codes], axis=1)
    legal = domain.legal_values(feature, values) & np.isfinite(values)
    edited = np.repeat(domain.base[:, None, :], len(feature), axis=1)
    edited[:, np.arange(len(feature)), feature] = np.where(legal, values, domain.base[:, feature])
    return edited
