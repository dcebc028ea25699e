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
    if same := repeated(names):
        raise InputError("io.same_column_text", received=same)
    others = [*keep, *([] if identity is None else [identity])]
    bare = [cell.strip() for cell in header]
    # A name with spaces around it stands for the bare name where that is not a column.
    cells = {name: header if name in header else bare for name in (*names, *others)}
    missing = [name for name in names if name not in cells[name]]
    if missing:
        near = suggestion(missing[0], [cell for cell in header if cell.strip() not in names])
        code = "io.missing_columns" if near is None else "io.misspelt_columns"
        raise InputError(code, source=source, missing=missing, received=list(header), near=near)
    for name in others:
        if name not in cells[name]:
            raise InputError(unknown("io.unknown_column", name, header, source=source))
    unclear = [name for name, among in cells.items() if among.count(name) > 1]
    if unclear:
        raise InputError("io.repeated_columns", source=source, received=unclear)
    place = {name: among.index(name) for name, among in cells.items()}
    kept = tuple(place[name] for name in keep)
    return ColumnPositions(tuple(place[name] for name in names), None if identity is None else place[identity], kept)


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
