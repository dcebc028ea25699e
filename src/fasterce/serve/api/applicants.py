"""Applicants to pick on the page, from a CSV or Parquet file: the first ones of it, held in memory."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from fasterce.errors import MissingExtraError
from fasterce.serve.messages import Description, Json, StartError

# Rows read of the file, and rows per page.
MAX_ROWS = 20_000
MAX_PAGE = 100


class Applicants:
    """Rows as JSON objects, each with the text it is searched by."""

    def __init__(
        self, rows: Iterable[Mapping[str, Json]], id_column: str | None, features: Sequence[Mapping[str, Json]]
    ) -> None:
        self.people: list[dict[str, Json]] = []
        for number, row in enumerate(rows, start=1):
            values = {
                feature["name"]: cell(row.get(feature["name"]), feature) for feature in features if _is_given(feature, row)
            }
            self.people.append({"id": str(row[id_column] if id_column else number), "values": values})
        self.texts = [f"{one['id']} {' '.join(map(str, one['values'].values()))}".lower() for one in self.people]

    @classmethod
    def read(cls, path: Path, id_column: str | None, features: Sequence[Mapping[str, Json]]) -> "Applicants":
        try:
            rows = parquet(path) if path.suffix.lower() in (".parquet", ".pq") else delimited(path)
        except (OSError, ValueError) as error:
            raise StartError("serve.applicants_not_read", path=str(path), reason=str(error)) from error
        wanted = [feature["name"] for feature in features] + ([id_column] if id_column else [])
        optional = {feature["name"] for feature in features if not feature.get("required", True)}
        lacking = [name for name in wanted if rows and name not in rows[0] and name not in optional]
        if lacking:
            raise StartError("serve.applicants_lack_columns", path=str(path), columns=lacking)
        return cls(rows, id_column, features)

    def find(self, query: str, first: int, count: int) -> tuple[int, list[dict[str, Json]]]:
        """Return how many contain every word of the query, and a page of them."""
        words = query.lower().split()
        hits = [k for k, text in enumerate(self.texts) if all(word in text for word in words)]
        return len(hits), [self.people[k] for k in hits[first : first + min(count, MAX_PAGE)]]


def columns(description: Description) -> list[Mapping[str, Json]]:
    """Return the columns that may be in the file: the features, and as text those that are passed through."""
    passed = [{**one, "kind": "text"} for one in description.schema.get("passthrough", ())]
    return [*description.schema["features"], *passed]


def _is_given(feature: Mapping[str, Json], row: Mapping[str, Json]) -> bool:
    return feature["name"] in row or feature.get("required", True)


def delimited(path: Path) -> list[dict[str, Json]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(islice(csv.DictReader(file), MAX_ROWS))


def parquet(path: Path) -> list[dict[str, Json]]:
    try:
        from pyarrow import parquet as files  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", "Reading --applicants from Parquet") from error

    batches = files.ParquetFile(path).iter_batches(batch_size=MAX_ROWS)
    return next((batch.to_pylist() for batch in batches), [])


def cell(value: Json, feature: Mapping[str, Json]) -> Json:
    """Return a value of the file as a value of its column."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if feature["kind"] == "numeric":
        return number(value)
    if feature["kind"] in ("time", "text"):
        return str(value)
    return next((known for known in feature["categories"] if str(known) == str(value)), str(value))


def number(value: Json) -> Json:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return str(value)
    return int(found) if found.is_integer() and abs(found) < 2**53 else found
