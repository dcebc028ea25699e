"""What the page is shown with: German Credit, and a bank that answers numbers and has names that are not to be trusted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import skops.io
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from fasterce import FasterCE, Schema, datasets
from fasterce.cli.adult_demo import preprocessing
from fasterce.models.files.load import load_model

HOSTILE = "<img src=x onerror=document.title='taken'>"
WHO = "applicant"
ZONE = "Europe/Berlin"
PEOPLE = 60


def german(folder: Path) -> None:
    data = datasets.load("german_credit")
    pipeline = make_pipeline(preprocessing(), LogisticRegression(max_iter=1000)).fit(data.X, data.y)
    fitted = keep(folder, pipeline, data.X, data.schema)
    refused = data.X[fitted.model.predict(data.X) == "bad"].head(PEOPLE)
    write(refused, [f"A-{1000 + k}" for k in range(len(refused))], folder)


def hostile(folder: Path) -> None:
    """A credit limit: a number is wanted. Column, category and person try to be more than text."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": rng.normal(50, 15, 300).clip(5, 120).round(1),
            "debt": rng.gamma(2.0, 10.0, 300).round(2),
            f"job {HOSTILE}": rng.choice(["clerk", "nurse", HOSTILE], 300),
        }
    )
    limits = 100 * (people["income"] - 0.8 * people["debt"] + 6 * (people.iloc[:, 2] == "nurse"))
    keep(folder, make_pipeline(preprocessing(), LinearRegression()).fit(people, limits), people, None)
    write(people.head(PEOPLE), [HOSTILE, *(f"L-{k}" for k in range(1, PEOPLE))], folder)


def keep(folder: Path, pipeline: Any, X: pd.DataFrame, schema: Schema | None) -> FasterCE:
    """An artifact that brings its model."""
    folder.mkdir()
    schema = schema or Schema.infer(X)
    file = folder / "model.skops"
    skops.io.dump(pipeline, file)
    loaded = load_model(file)
    explainer = FasterCE(loaded.model, schema, random_state=0, progress=False).fit(X)
    explainer.save(folder / "artifact", model_file=loaded)
    return explainer


def write(people: pd.DataFrame, names: list[str], folder: Path) -> None:
    people.set_axis(names).to_csv(folder / "people.csv", index_label=WHO)


def subscribers(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, rows), unit="D")
    return pd.DataFrame(
        {
            "since": days,
            "called": (days + pd.to_timedelta(rng.integers(0, 86_400, rows), unit="s")).tz_localize("UTC").tz_convert(ZONE),
            "spent": rng.normal(50, 15, rows).round(2),
            "note": [f"customer number {k} said {rng.choice(['hello', 'goodbye'])} on the phone" for k in range(rows)],
        }
    )


def stays(frame: pd.DataFrame) -> Any:
    """Who joined before 2022 stays, and who joined later if they spend much; not who said goodbye."""
    long = (frame["since"] < "2022-01-01").to_numpy() | (frame["spent"].to_numpy(dtype=float) > 80)
    return np.where(long & frame["note"].str.contains("hello").to_numpy(), "stays", "leaves")


def dated(folder: Path) -> None:
    folder.mkdir()
    X = subscribers()
    schema = Schema.infer(X, passthrough=["note"]).declare(target="stays")
    FasterCE(stays, schema, random_state=0, progress=False).fit(X).save(folder / "artifact")
    leaving = X[(stays(X) == "leaves") & X["note"].str.contains("hello")].head(PEOPLE)
    write(leaving, [f"S-{k}" for k in range(len(leaving))], folder)
