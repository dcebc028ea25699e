"""Demo: train a model on Adult, explain a few rows as in the paper's Table 2, and write demo.html with plots."""

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import datasets
from fasterce.constraints import Near, OnlyUp, Order, Range, Step, Together
from fasterce.explainer import FasterCE
from fasterce.explanation import Explanation
from fasterce.options import Method
from fasterce.viz import html, plots, templates

ROWS_SHOWN = 3
ROWS_TRIED = 40
ALONE = ("education", "capital_gain", "hours_per_week")
TOGETHER = ("education", "occupation")
# The searches of the paper's Table 2: a method and the columns it may change.
SEARCHES: tuple[tuple[Method, tuple[str, ...] | None], ...] = (
    ("closest", None),
    *(("sparse", (name,)) for name in ALONE),
    ("realistic", TOGETHER),
)
# Labels by method and options: the paper's algorithms as written, then the default.
ENGINES: tuple[tuple[dict[str, str], dict[str, Any]], ...] = (
    ({"closest": "FASTER-CE1", "sparse": "FASTER-CE2", "realistic": "FASTER-CE3"}, {"engine": "paper"}),
    ({"closest": "closest", "sparse": "sparse", "realistic": "realistic"}, {}),
)
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
CONSTRAINTS = (
    Near("age", up=3),
    Range("hours_per_week", None, 60),
    Step("hours_per_week", 5),
    Order("education", EDUCATION),
    OnlyUp("education"),
    Together("education", "education_num", slope=1),
)
PAGE = Path("demo.html")


def main(page: Path = PAGE) -> None:
    """Run the demo and write its page."""
    console = Console()
    data = datasets.load("adult")
    X_train, X_test, y_train, _ = train_test_split(data.X, data.y, test_size=0.2, random_state=0)
    console.print(f"[bold]{escape(repr(data))}[/bold]")

    started = perf_counter()
    model = make_model().fit(X_train, y_train)
    console.print(f"model (scaler, one-hot, MLP 64-32) trained in {perf_counter() - started:.1f} s")

    console.print("fitting the explainer; the first fit also compiles the search, which takes a minute or two")
    started = perf_counter()
    explainer = FasterCE(model, data.schema, random_state=0).fit(X_train)
    console.print(f"explainer fitted in {perf_counter() - started:.1f} s")
    console.print(escape(str(explainer.report_)))

    rejected = X_test[model.predict(X_test) != data.wanted]
    table = as_in_the_paper(explainer, with_most_counterfactuals(explainer, like_the_paper(rejected)))
    console.print("\n[bold]As in the paper's Table 2: closest, one feature alone, two together; the default beside it[/bold]")
    console.print(table)

    constrained = explainer.explain(table.rows, constraints=CONSTRAINTS, n=2, robust=0.9)
    console.print("[bold]With constraints: at most 3 years older, at most 60 hours in steps of 5, education only up[/bold]")
    console.print(constrained)

    batch = explainer.explain(rejected.iloc[:1000])
    console.print("[bold]A thousand rows at once[/bold]")
    console.print(escape(repr(batch)))
    each = batch.summary()
    console.print(
        f"per row: {each['features_changed']:.1f} features changed, distance {each['distance']:.2f}, {each['ms_each']:.2f} ms"
    )

    page.write_text(render(explainer, table, constrained, batch), encoding="utf-8")
    console.print(f"The same with pictures: {page.resolve()}", soft_wrap=True)


def make_model() -> Pipeline:
    """Return a scikit-learn pipeline on the raw table."""
    # Not `early_stopping`, which scikit-learn before 1.9 cannot do with labels that are text.
    return make_pipeline(preprocessing(), MLPClassifier((64, 32), tol=0.005, n_iter_no_change=3, random_state=0))


def balanced(X: pd.DataFrame, y: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """Repeat a rare class until it is a third as frequent as the other, since an MLP has no class weights."""
    counts = y.value_counts()
    if counts.min() * 5 > counts.max():
        return X, y
    rare = np.flatnonzero(y == counts.idxmin())
    order = np.concatenate([np.arange(len(y)), np.repeat(rare, counts.max() // counts.min() // 3)])
    return X.iloc[order], y.iloc[order]


def preprocessing() -> ColumnTransformer:
    """Scale numbers and one-hot encode categories."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
    )


def like_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows most like the paper's example: associate degree, professional, 40 hours, no capital gain."""
    likeness = (
        (rows["education"] == "Assoc-acdm").astype(int)
        + (rows["occupation"] == "Prof-specialty")
        + (rows["hours_per_week"] == 40)
        + (rows["capital_gain"] == 0)
    )
    return rows.loc[likeness.sort_values(ascending=False, kind="stable").index[:ROWS_TRIED]]


def as_in_the_paper(explainer: FasterCE, rows: pd.DataFrame) -> Explanation:
    """Return the five counterfactuals of the paper's table for each row, by its algorithms, and the default beside them."""
    first, *others = (
        explainer.explain(rows, method, features_to_vary=names, diagnose=False, **options)
        for _, options in ENGINES
        for method, names in SEARCHES
    )
    labels = [f"{title[method]} {' + '.join(names or ())}".strip() for title, _ in ENGINES for method, names in SEARCHES]
    return first.beside(*others, labels=labels)


def with_most_counterfactuals(explainer: FasterCE, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the few rows for which most of the searches find a counterfactual."""
    found = np.bincount(as_in_the_paper(explainer, rows).arrays.query, minlength=len(rows))
    return rows.iloc[np.argsort(-found, kind="stable")[:ROWS_SHOWN]]


def render(explainer: FasterCE, table: Explanation, constrained: Explanation, batch: Explanation) -> str:
    """Return the page."""
    walk = plots.walk(explainer.walk(table.rows.iloc[:1]))
    return html.page(
        "What would have had to be different?",
        [
            ("A few rows, as in the paper's Table 2", html.fragment(table)),
            ("The same rows with constraints, two counterfactuals each that hold under noise", html.fragment(constrained)),
            ("The changes of the first row", html.figure(plots.dumbbell(table, row=0), alt="Changes from and to")),
            ("The walk through latent space", html.figure(walk, alt="Latent walk across the prediction hyperplane")),
            ("What changes most, over a thousand rows", html.figure(plots.summary(batch), alt="Features changed most")),
            ("How good the fitted models are", templates.part("preformatted", str(explainer.report_))),
        ],
    )


if __name__ == "__main__":
    main()
