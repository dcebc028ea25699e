"""Predict how long a call of `explain` takes, from the durations of recent calls."""

# Weight of a call relative to the next one.
DECAY = 0.95
# Before the first call, in seconds: the fixed part of a call, and what each row adds.
FIXED_SECONDS, ROW_SECONDS = 0.05, 0.005
# With less variance of the number of rows, the slope is not estimated but this share of the mean time per row.
LEAST_VARIANCE, DEFAULT_SLOPE = 0.25, 0.1


class LatencyModel:
    """Weighted least squares of seconds on rows, with recent calls weighted more; slope and intercept are at least 0."""

    def __init__(self) -> None:
        self.weight, self.rows, self.seconds = 2.0, 33.0, 2 * FIXED_SECONDS + 33.0 * ROW_SECONDS
        self.squares = 1.0 + 32.0**2
        self.products = (FIXED_SECONDS + ROW_SECONDS) + 32.0 * (FIXED_SECONDS + 32.0 * ROW_SECONDS)

    def observe(self, rows: int, seconds: float) -> None:
        """Add a call with `rows` rows that took `seconds`."""
        self.weight = DECAY * self.weight + 1.0
        self.rows = DECAY * self.rows + rows
        self.seconds = DECAY * self.seconds + seconds
        self.squares = DECAY * self.squares + rows * rows
        self.products = DECAY * self.products + rows * seconds

    def predict(self, rows: float) -> float:
        """Return the expected seconds of a call with `rows` rows."""
        mean_rows, mean_seconds = self.rows / self.weight, self.seconds / self.weight
        variance = self.squares / self.weight - mean_rows**2
        per_row = mean_seconds / mean_rows
        if variance > LEAST_VARIANCE:
            slope = (self.products / self.weight - mean_rows * mean_seconds) / variance
        else:  # calls of one size say nothing about the slope
            slope = DEFAULT_SLOPE * per_row
        slope = min(max(slope, 0.0), per_row)
        return max(mean_seconds + slope * (rows - mean_rows), slope * rows)
