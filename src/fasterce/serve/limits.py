"""Limits shared by clients: each client can always use its equal share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import log2

from fasterce.serve.messages import Json, WorkerRequest

# Cost of a row by its method, and what robustness adds; a row with the default options has the cost 1. In between what was
# measured with models whose structure is read and with others.
METHODS = {"all": 5.0, "realistic": 4.0}
ROBUST = 3.0
PREDICTION = 0.05
# Less than any cost: what is left of rounding.
NOTHING = 1e-9


def row_cost(request: WorkerRequest) -> float:
    """Estimate what a row of a request costs, relative to a row with the default options."""
    if request.action == "predict":
        return PREDICTION
    options: Mapping[str, Json] = request.options
    method = METHODS.get(str(options.get("method")), 1.0)
    return method * (1 + log2(max(int(options.get("n") or 1), 1))) + (0.0 if options.get("robust") is None else ROBUST)


class FairShare:
    """An amount that clients share. One alone may hold all of it; beyond the limit each gets its equal part, so that the
    total stays within a small multiple of the limit. The connections of a client share its part in the same way, where
    they are told apart: a large request of one leaves room for the others.

    Parameters
    ----------
    limit : float
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.total = 0.0
        self.held: dict[str, dict[str, float]] = {}

    @property
    def is_full(self) -> bool:
        """Whether some clients may hold no more."""
        return self.total >= self.limit

    def permits(self, client: str, connection: str = "") -> bool:
        """Whether a client may hold more, over this connection."""
        if not self.is_full:
            return True
        connections = self.held.get(client, {})
        count = len(connections) + (connection not in connections)
        part = self.limit / (len(self.held) + (client not in self.held)) / count
        # A part must be worth a row: otherwise any number of connections could hold one each.
        return connections.get(connection, 0.0) < part and (part >= 1.0 or count == 1)

    @contextmanager
    def hold(self, client: str, connection: str = "", amount: float = 1.0) -> Iterator[None]:
        """Hold an amount for a client while the block runs."""
        connections = self.held.setdefault(client, {})
        connections[connection] = connections.get(connection, 0.0) + amount
        self.total += amount
        try:
            yield
        finally:
            connections[connection] -= amount
            self.total -= amount
            if connections[connection] < NOTHING:
                del connections[connection]
            if not connections:
                del self.held[client]
            if not self.held:
                self.total = 0.0
