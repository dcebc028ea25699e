"""Three tables to try counterfactuals on, bundled: nothing is downloaded."""

from fasterce.datasets import adult, german_credit, lending_club
from fasterce.datasets.bundle import Dataset
from fasterce.errors import InputError, unknown_name

__all__ = ["Dataset", "load", "names"]

_LOADERS = {
    "adult": adult.load,
    "german_credit": german_credit.load,
    "lending_club": lending_club.load,
}
_ALIASES = {"german": "german_credit", "lending": "lending_club"}


def names() -> tuple[str, ...]:
    """The datasets that `load` knows.

    >>> names()
    ('adult', 'german_credit', 'lending_club')
    """
    return tuple(_LOADERS)


def load(name: str, *, codes: bool = False) -> Dataset:
    """A bundled dataset by name ("german" and "lending" are short for the longer names).

    With `codes=True`, German Credit keeps its published codes ('A11') instead of readable categories.
    """
    canonical = _ALIASES.get(name, name)
    if canonical not in _LOADERS:
        raise InputError(unknown_name("dataset", name, [*_LOADERS, *_ALIASES]))
    if not codes:
        return _LOADERS[canonical]()
    if canonical != "german_credit":
        raise InputError(f"codes=True must go with 'german_credit', the only dataset with codes; got {name!r}.")
    return german_credit.load(codes=True)
