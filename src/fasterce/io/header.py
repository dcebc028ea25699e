"""Match the columns of a file with those an explainer needs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from fasterce.errors import InputError, suggestion, unknown


@dataclass(frozen=True)
class ColumnPositions:
    """The positions of the features, the id and the columns kept in the header of a file."""

    features: tuple[int, ...]
    identity: int | None
    kept: tuple[int, ...]

    @property
    def used(self) -> list[int]:
        extra = [] if self.identity is None else [self.identity]
        return sorted({*self.features, *extra, *self.kept})


def find(
    header: Sequence[str], features: Sequence[Hashable], identity: str | None, keep: Sequence[str], source: str
) -> ColumnPositions:
    """Return the positions of all columns needed; other columns are ignored."""
    names = [str(name) for name in features]
    if repeated := _repeated(names):
        raise InputError("io.same_column_text", received=repeated)
    others = [*keep, *([] if identity is None else [identity])]
    by_name = _by_name(header, [*names, *others])
    missing = [name for name in names if name not in by_name]
    if missing:
        spare = [cell for cell in header if cell.strip() not in names]
        near = suggestion(missing[0], spare)
        code = "io.missing_columns" if near is None else "io.misspelt_columns"
        raise InputError(code, source=source, missing=missing, received=list(header), near=near)
    for name in others:
        if name not in by_name:
            raise InputError(unknown("io.unknown_column", name, header, source=source))
    cells, bare = list(header), [cell.strip() for cell in header]
    unclear = [
        name
        for name in dict.fromkeys([*names, *others])
        if cells.count(name) > 1 or (name not in cells and bare.count(name) > 1)
    ]
    if unclear:
        raise InputError("io.repeated_columns", source=source, received=unclear)
    kept = tuple(by_name[name] for name in keep)
    return ColumnPositions(tuple(by_name[name] for name in names), None if identity is None else by_name[identity], kept)


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _by_name(header: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """Return positions by name; a name with spaces around it stands for the bare name where that is not a column."""
    exact = {name: place for place, name in reversed(list(enumerate(header)))}
    bare = {name.strip(): place for place, name in reversed(list(enumerate(header)))}
    return {name: exact[name] if name in exact else bare[name] for name in wanted if name in exact or name in bare}
