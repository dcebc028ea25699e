"""Limits that clients share: none can keep another from its equal part."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fasterce.serve.messages import Json, WorkerRequest

# Cost of all methods instead of one, of a counterfactual after the first one, of a row searched robustly, and of a
# prediction. A row with the default options has the cost 1.
ALL_METHODS = 3.0
EACH_MORE = 0.25
ROBUST = 2.0
PREDICTION = 0.05


def row_cost(request: WorkerRequest) -> float:
    """Estimate what a row of a request costs, relative to a row with the default options."""
    if request.action == "predict":
        return PREDICTION
    options: Mapping[str, Json] = request.options
    methods = ALL_METHODS if options.get("method") == "all" else 1.0
    more = max(int(options.get("n") or 1) - 1, 0)
    return methods * (1 + EACH_MORE * more) * (1.0 if options.get("robust") is None else ROBUST)


class FairShare:
    """An amount that clients share. One alone may hold all of it; beyond the limit each gets its equal part, so that the
    total stays within a small multiple of the limit.

    Parameters
    ----------
    limit : float
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.held: dict[str, float] = {}

    def permits(self, client: str) -> bool:
        """Whether a client may hold more."""
        if sum(self.held.values()) < self.limit:
            return True
        return self.held.get(client, 0.0) < self.limit / len(self.held.keys() | {client})

    @contextmanager
    def hold(self, client: str, amount: float = 1.0) -> Iterator[None]:
        """Hold an amount for a client while the block runs."""
        self.held[client] = self.held.get(client, 0.0) + amount
        try:
            yield
        finally:
            left = self.held[client] - amount
            if left > 1e-9:
                self.held[client] = left
            else:
                del self.held[client]
