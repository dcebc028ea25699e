"""Shared first steps of commands: load the model and the explainer, read rows and option values."""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fasterce import artifact, io
from fasterce.artifact import OpenedExplainer
from fasterce.artifact.folder import MANIFEST, read
from fasterce.artifact.manifest import parse
from fasterce.cli.options import CsvOptions, LoadOptions, ModelOptions
from fasterce.constraints import Constraint
from fasterce.constraints.io import load as load_constraints
from fasterce.data.schema import Feature, Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, SchemaError, unknown
from fasterce.explainer import FasterCE
from fasterce.models.files.load import LoadedModel, load_model
from fasterce.options import Kind, explain_arguments, offered

Interval = tuple[float | None, float | None]


@dataclass(frozen=True)
class Subject:
    """Columns, categories and classes that the text of options refers to."""

    schema: Schema
    classes: Sequence[object]
    regression: bool

    @classmethod
    def of(cls, explainer: FasterCE) -> "Subject":
        state = explainer.state_
        return cls(state.table.schema, state.classes, state.numbers is not None)

    @classmethod
    def read(cls, folder: Path) -> "Subject":
        """Read an artifact without loading its arrays or the model."""
        manifest = parse(read(folder / MANIFEST), folder / MANIFEST)
        return cls(Schema.from_dict(manifest["schema"]), manifest["classes"], manifest["numbers"] is not None)

    def arguments(self, texts: Mapping[str, object]) -> dict[str, object]:
        """Return arguments of `FasterCE.explain` from what was typed, by option."""
        readers: dict[Kind, Callable[..., object]] = {
            Kind.TARGET: self.target,
            Kind.BOUNDS: interval,
            Kind.COLUMNS: self.columns,
            Kind.RANGES: self.ranges,
            Kind.CONSTRAINTS: _constraints,
            Kind.GROUP: group,
        }
        values: dict[str, object] = {}
        for option in offered("cli"):
            text = texts[option.name]
            reader = readers.get(option.kind)
            values[option.name] = text if reader is None or text is None else reader(text, option.name)
            if option.kind is Kind.GROUP and not values[option.name]:
                del values[option.name]
        return explain_arguments({**values, "constraints": values["constraints"] or []})

    def target(self, text: str, option: str) -> object:
        """Return a class by its text, or the interval LOW:HIGH for a model that predicts numbers."""
        if self.regression:
            return interval(text, option)
        known = {str(label): label for label in self.classes}
        if text not in known and text != "any other":
            raise InputError(unknown("cli.unknown_class", text, known, option=option))
        return known.get(text, text)

    def columns(self, texts: Sequence[str], option: str) -> list[Hashable]:
        return names_of(self.schema.names, texts, option)

    def ranges(self, texts: Sequence[str], option: str) -> dict[Hashable, object] | None:
        """Read `hours=20:40`, `hours=20:` or `hours=:40` for a number, `housing=own,rent` for a category."""
        found: dict[Hashable, object] = {}
        for text in texts:
            name, separator, values = text.partition("=")
            if not separator:
                raise InputError("cli.not_a_range", option=option, received=text)
            (column,) = names_of(self.schema.names, [name], option)
            feature = self.schema[column]
            found[column] = _within(feature, values, option) if feature.numeric else categories(feature, values, option)
        return found or None


def load_arguments(options: LoadOptions) -> dict[str, Any]:
    """Return the arguments of `load_model`."""
    names = class_names(options.classes)
    return {"trust_pickle": options.trust_pickle, "trusted": tuple(options.trusted or ()), "classes": names}


def load(source: str, options: LoadOptions) -> LoadedModel:
    """Load the model named; modules are looked for in the current folder too."""
    _import_from_here()
    return load_model(source, **load_arguments(options))


def open_explainer(folder: Path, options: ModelOptions) -> OpenedExplainer:
    """Open the explainer of a folder, with the model named or else the one in the folder."""
    if options.model is None and (options.trust_pickle or options.classes is not None):
        raise InputError("cli.no_model_file")
    _import_from_here()
    return artifact.open_explainer(folder, options.model, **load_arguments(options))


def _import_from_here() -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")


def read_rows(
    source: str, table: Table, options: CsvOptions, *, id_column: str | None = None, limit: int | None = None
) -> pd.DataFrame:
    """Read the first `limit` rows for an explainer at once, with the id column as their index."""
    csv = {one.name: getattr(options, one.name) for one in fields(CsvOptions)}
    with io.open_rows(source, table=table, limit=limit, ids=id_column, **csv) as rows:
        chunks = [_indexed(chunk) for chunk in rows]
    return pd.concat(chunks) if chunks else table.frame(np.zeros((0, len(table.schema))))


def _indexed(chunk: io.Chunk) -> pd.DataFrame:
    positions = range(chunk.first, chunk.first + len(chunk.frame))
    return chunk.frame.set_axis(positions if chunk.ids is None else chunk.ids.to_pylist())


def names_of(every: Iterable[Hashable], texts: Sequence[str], option: str) -> list[Hashable]:
    """Return names from texts, each of which has one name or several separated by commas."""
    known = {str(name): name for name in every}
    found = [name for text in texts for name in _listed(text, known)]
    for name in found:
        if name not in known:
            raise InputError(unknown("cli.unknown_column", name, known, option=option))
    return [known[name] for name in found]


def _listed(text: str, known: Iterable[str]) -> list[str]:
    """Return a known name as it is, else the names between commas."""
    return [text] if text in known else [part.strip() for part in text.split(",")]


def group(texts: Sequence[str], option: str) -> dict[str, object]:
    """Read `name=value` pairs of an option that has options of its own; numbers become numbers."""
    found: dict[str, object] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InputError("cli.not_a_pair", option=option, received=text)
        try:
            found[name.strip()] = float(value)
        except ValueError:
            found[name.strip()] = value.strip()
    return found


def interval(text: str, option: str, column: Hashable = None) -> Interval:
    """Read `LOW:HIGH`; either end may be left out."""
    low, separator, high = text.partition(":")
    try:
        ends = tuple(float(end) if end.strip() else None for end in (low, high))
    except ValueError:
        separator = ""
    if not separator or ends == (None, None):
        code = "cli.not_an_interval" if column is None else "cli.not_an_interval_of_column"
        raise InputError(code, option=option, column=column, received=text)
    return ends[0], ends[1]


def _within(feature: Feature, text: str, option: str) -> tuple[object, object]:
    if feature.is_time:
        return _times_within(feature, text, option)
    low, high = interval(text, option, feature.name)
    return feature.lower if low is None else low, feature.upper if high is None else high


def _times_within(feature: Feature, text: str, option: str) -> tuple[object, object]:
    """Read LOW:HIGH of dates or times, which may have colons themselves."""
    for place in (k for k, character in enumerate(text) if character == ":"):
        ends = text[:place].strip(), text[place + 1 :].strip()
        if any(ends) and all(not end or not math.isnan(feature.number(end)) for end in ends):
            return ends[0] or feature.value(feature.lower), ends[1] or feature.value(feature.upper)
    raise InputError("cli.not_an_interval_of_column", option=option, column=feature.name, received=text)


def categories(feature: Feature, text: str, option: str) -> list[object]:
    """Return categories by their text."""
    known = {str(category): category for category in feature.categories}
    known |= {text.lower(): category for text, category in known.items() if isinstance(category, bool)}
    names = _listed(text, known)
    for name in names:
        if name not in known:
            raise SchemaError(unknown("cli.unknown_category", name, known, option=option, column=feature.name))
    return [known[name] for name in names]


def class_names(text: str | None) -> list[str] | None:
    """Read `refused,granted`: the names of classes 0, 1, …"""
    if text is None:
        return None
    names = _listed(text, ())
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise InputError("cli.not_class_names", option="classes", received=text)
    return names


def _constraints(path: Path, option: str) -> list[Constraint]:
    return list(load_constraints(path))
