"""The experiments of the FASTER-CE paper at its size: `make bench-paper`, or `python -m benchmarks.paper`."""
