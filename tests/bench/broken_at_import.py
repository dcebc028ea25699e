"""A system that cannot even be imported."""

raise ImportError("a library that is not there")
