"""Three bundled datasets; nothing is downloaded."""

from fasterce.datasets import adult, german_credit, lending_club
from fasterce.datasets.bundle import Dataset
from fasterce.errors import InputError, unknown

__all__ = ["Dataset", "load", "names"]

_LOADERS = {
    "adult": adult.load,
    "german_credit": german_credit.load,
    "lending_club": lending_club.load,
}
_ALIASES = {"german": "german_credit", "lending": "lending_club"}


def names() -> tuple[str, ...]:
    """Return the names of the bundled datasets.

    >>> names()
    ('adult', 'german_credit', 'lending_club')
    """
    return tuple(_LOADERS)


def load(name: str, *, codes: bool = False) -> Dataset:
    """Load a bundled dataset.

    Parameters
    ----------
    name : str
        "adult", "german_credit" or "lending_club"; "german" and "lending" are short for these.
    codes : bool, default=False
        Whether German Credit keeps its published codes ('A11') instead of readable categories.

    Raises
    ------
    InputError
        If the name is unknown, or another dataset than German Credit is loaded with `codes`.
    """
    canonical = _ALIASES.get(name, name)
    if canonical not in _LOADERS:
        raise InputError(unknown("data.unknown_dataset", name, [*_LOADERS, *_ALIASES], option="name"))
    if not codes:
        return _LOADERS[canonical]()
    if canonical != "german_credit":
        raise InputError("data.dataset_without_codes", option="codes", received=name)
    return german_credit.load(codes=True)
