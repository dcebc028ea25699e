"""Everything `fit` learns, and what keeps it current: update, drift, recheck."""
