"""Which columns of a file are the explainer's, and one sentence where they are not all there."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from fasterce.errors import InputError, shorten, unknown_name


@dataclass(frozen=True)
class Places:
    """Where in a file's header the features stand, the id, and the columns kept."""

    features: tuple[int, ...]
    identity: int | None
    kept: tuple[int, ...]

    @property
    def used(self) -> list[int]:
        extra = [] if self.identity is None else [self.identity]
        return sorted({*self.features, *extra, *self.kept})


def find(
    header: Sequence[str], features: Sequence[Hashable], identity: str | None, keep: Sequence[str], where: str
) -> Places:
    """The places of all that is wanted; other columns are passed over."""
    names = [str(name) for name in features]
    _check_distinct(names)
    others = [*keep, *([] if identity is None else [identity])]
    by_name = _by_name(header, [*names, *others])
    missing = [name for name in names if name not in by_name]
    if missing:
        raise InputError(_missing(missing, names, header, where))
    for name in others:
        if name not in by_name:
            raise InputError(f"{where}: {unknown_name('column', name, header)}")
    _check_once(header, [*names, *others], where)
    kept = tuple(by_name[name] for name in keep)
    return Places(tuple(by_name[name] for name in names), None if identity is None else by_name[identity], kept)


def _check_once(header: Sequence[str], used: Sequence[str], where: str) -> None:
    """A name must be clear: once as it stands, or else once but for spaces around it."""
    cells, bare = list(header), [cell.strip() for cell in header]
    unclear = [name for name in dict.fromkeys(used) if cells.count(name) > 1 or (name not in cells and bare.count(name) > 1)]
    if unclear:
        raise InputError(f"{where} must name every column it is read by once; got {shorten(unclear)} more than once.")


def _check_distinct(names: Sequence[str]) -> None:
    same = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if same:
        raise InputError(f"Columns of a file are told apart by their text; got {shorten(same)} for different columns.")


def _by_name(header: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """Names as they stand, or without the spaces around them where only that is a name wanted."""
    exact = {name: place for place, name in reversed(list(enumerate(header)))}
    bare = {name.strip(): place for place, name in reversed(list(enumerate(header)))}
    return {name: exact[name] if name in exact else bare[name] for name in wanted if name in exact or name in bare}


def _missing(missing: Sequence[str], names: Sequence[str], header: Sequence[str], where: str) -> str:
    spare = [cell for cell in header if cell.strip() not in names]
    near = get_close_matches(missing[0], spare, n=1)
    hint = f" Did you mean {missing[0]!r} by {near[0]!r}?" if near else ""
    return (
        f"{where} must have the columns the explainer was fitted on; missing {shorten(missing)}; got {shorten(header)}.{hint}"
    )
