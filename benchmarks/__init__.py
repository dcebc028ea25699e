"""Benchmarks of fasterce and of other systems; not part of the package."""
