"""The service under load, faults and time: `make bench-serve`; see benchmarks/load.py."""
