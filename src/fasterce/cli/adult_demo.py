"""The main job on bundled data: `python -m fasterce.demo` trains a black box on Adult, explains a few people as in the
paper's second table, and writes the same with pictures to demo.html."""

from html import escape as escape_html
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import datasets
from fasterce.constraints import Near, OnlyUp, Order, Range, Step, Together
from fasterce.display import html, plots
from fasterce.explainer import FasterCE
from fasterce.explanation import Explanation

PEOPLE = 3
CANDIDATES = 40
ALONE = ("education", "capital_gain", "hours_per_week")
TOGETHER = ("education", "occupation")
SCHOOLING = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
RULES = (
    Near("age", up=3),
    Range("hours_per_week", None, 60),
    Step("hours_per_week", 5),
    Order("education", SCHOOLING),
    OnlyUp("education"),
    Together("education", "education_num", slope=1),
)
PAGE = Path("demo.html")


def main(page: Path = PAGE) -> None:
    console = Console()
    data = datasets.load("adult")
    X_train, X_test, y_train, _ = train_test_split(data.X, data.y, test_size=0.2, random_state=0)
    console.print(f"[bold]{escape(repr(data))}[/bold]")

    started = perf_counter()
    model = black_box().fit(X_train, y_train)
    console.print(f"black box (scaler, one-hot, MLP 64-32) trained in {perf_counter() - started:.1f} s")

    started = perf_counter()
    explainer = FasterCE(model, data.schema, random_state=0).fit(X_train)
    console.print(f"explainer fitted in {perf_counter() - started:.1f} s")
    console.print(escape(str(explainer.report_)))

    refused = X_test[model.predict(X_test) != data.wanted]
    table = as_in_the_paper(explainer, with_most_answers(explainer, like_the_paper(refused)))
    console.print("\n[bold]As in the paper's Table 2: one answer, one feature alone, two features together[/bold]")
    console.print(table)

    careful = explainer.explain(table.rows, rules=RULES, n=2, robust=0.9)
    console.print("[bold]With rules: three years older at most, sixty hours at most and in fives, schooling only up[/bold]")
    console.print(careful)

    batch = explainer.explain(refused.iloc[:1000])
    console.print("[bold]A thousand people at once[/bold]")
    console.print(escape(repr(batch)), escape(str(batch.summary())))

    page.write_text(render(explainer, table, careful, batch), encoding="utf-8")
    console.print(f"The same with pictures: {page.resolve()}", soft_wrap=True)


def black_box() -> Any:
    """A model that can only be asked: a scikit-learn pipeline on the raw table."""
    return make_pipeline(preprocessing(), MLPClassifier((64, 32), early_stopping=True, n_iter_no_change=3, random_state=0))


def balanced(X: pd.DataFrame, y: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """A rare outcome repeated until it is a third as frequent as the other: an MLP has no class weights."""
    counts = y.value_counts()
    if counts.min() * 5 > counts.max():
        return X, y
    rare = np.flatnonzero(y == counts.idxmin())
    order = np.concatenate([np.arange(len(y)), np.repeat(rare, counts.max() // counts.min() // 3)])
    return X.iloc[order], y.iloc[order]


def preprocessing() -> Any:
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
    )


def like_the_paper(refused: pd.DataFrame) -> pd.DataFrame:
    """People like the paper's example, as far as there are: some college, a professional, forty hours, no capital gain."""
    likeness = (
        (refused["education"] == "Assoc-acdm").astype(int)
        + (refused["occupation"] == "Prof-specialty")
        + (refused["hours_per_week"] == 40)
        + (refused["capital_gain"] == 0)
    )
    return refused.loc[likeness.sort_values(ascending=False, kind="stable").index[:CANDIDATES]]


def as_in_the_paper(explainer: FasterCE, people: pd.DataFrame) -> Explanation:
    """The five answers of the paper's table."""
    closest = explainer.explain(people)
    alone = [explainer.explain(people, "sparse", features_to_vary=[name], why_not=False) for name in ALONE]
    together = explainer.explain(people, "realistic", features_to_vary=TOGETHER, why_not=False)
    labels = ["CE1 closest", *(f"CE2 {name}" for name in ALONE), "CE3 " + " + ".join(TOGETHER)]
    return closest.beside(*alone, together, labels=labels)


def with_most_answers(explainer: FasterCE, people: pd.DataFrame) -> pd.DataFrame:
    """A few of the people: those for whom most of the five find an answer."""
    answers = np.bincount(as_in_the_paper(explainer, people).answers.query, minlength=len(people))
    return people.iloc[np.argsort(-answers, kind="stable")[:PEOPLE]]


def render(explainer: FasterCE, table: Explanation, careful: Explanation, batch: Explanation) -> str:
    walk = plots.walk(explainer.walk(table.rows.iloc[:1]))
    return html.page(
        "What would have had to be different?",
        [
            ("A few people, as in the paper's Table 2", html.fragment(table)),
            ("The same people with rules, two answers each that hold when shaken", html.fragment(careful)),
            ("The changes of the first person", html.figure(plots.dumbbell(table, row=0), alt="Changes from and to")),
            ("The walk through latent space", html.figure(walk, alt="Latent walk across the prediction hyperplane")),
            ("What changes most, over a thousand people", html.figure(plots.summary(batch), alt="Features changed most")),
            ("How good the learned pieces are", f"<pre>{escape_html(str(explainer.report_))}</pre>"),
        ],
    )


if __name__ == "__main__":
    main()
