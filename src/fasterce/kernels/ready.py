"""Importing this module compiles all kernels, for processes that fork workers."""

from fasterce.kernels.warm_up import warm_up

warm_up()
