"""Measures of the search itself: distance to the optimum, consistency between calls, time (`benchmarks/quality.py`)."""
