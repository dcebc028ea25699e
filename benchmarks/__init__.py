"""What measures fasterce beside others; not part of the package."""
