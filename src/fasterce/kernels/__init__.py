"""Compiled inner loops (Numba), written for one query at a time."""
