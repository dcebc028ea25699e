"""How long calls take: a straight line through those of late, what a call costs at all and what each row adds."""

FORGETS = 0.95
# Before anything is known: seconds of a call, and of a row of it.
AT_ALL, A_ROW = 0.05, 0.005
TELLING, LITTLE = 0.25, 0.1


class Pace:
    """Weighted least squares, newer calls counting more; neither part is ever below nought."""

    def __init__(self) -> None:
        self.weight, self.rows, self.seconds = 2.0, 33.0, 2 * AT_ALL + 33.0 * A_ROW
        self.squares = 1.0 + 32.0**2
        self.products = (AT_ALL + A_ROW) + 32.0 * (AT_ALL + 32.0 * A_ROW)

    def note(self, rows: int, seconds: float) -> None:
        """A call with so many rows took so long."""
        self.weight = FORGETS * self.weight + 1.0
        self.rows = FORGETS * self.rows + rows
        self.seconds = FORGETS * self.seconds + seconds
        self.squares = FORGETS * self.squares + rows * rows
        self.products = FORGETS * self.products + rows * seconds

    def expected(self, rows: float) -> float:
        """Seconds a call with so many rows is likely to take."""
        mean_rows, mean_seconds = self.rows / self.weight, self.seconds / self.weight
        spread = self.squares / self.weight - mean_rows**2
        share = mean_seconds / mean_rows
        # Calls all of a size tell nothing of what a row adds: little, as is usual; those to come will tell.
        slope = (self.products / self.weight - mean_rows * mean_seconds) / spread if spread > TELLING else LITTLE * share
        slope = min(max(slope, 0.0), share)
        return max(mean_seconds + slope * (rows - mean_rows), slope * rows)
