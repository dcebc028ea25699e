"""Random tables and random rules about them, for property tests."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fasterce import constraints as c
from fasterce.constraints.compile import CompiledConstraints
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table

JOBS = ["clerk", "nurse", "smith", "tailor"]
GRADES = ["low", "mid", "high", "top"]


def table(seed: int, rows: int = 24) -> pd.DataFrame:
    """Whole numbers, decimals, 32-bit floats, text, ordered categories, a sum and a ratio of others."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.integers(10, 90, rows) * 100,
            "pay": rng.uniform(1, 40, rows).round(2),
            "rate": rng.uniform(0, 5, rows).round(1).astype(np.float32),
            "job": rng.choice(JOBS, rows),
            "grade": pd.Categorical(rng.choice(GRADES, rows), GRADES, ordered=True),
            "own home": rng.choice([True, False], rows),
        }
    )
    X["total"] = (X["income"] + X["pay"]).round(2)
    X["ratio"] = (12 * X["pay"] / X["income"]).round(4)
    return X


def compiled(
    X: pd.DataFrame, call: Any = (), vary: Any = None, permitted: Any = None, override: bool = False, **schema: Any
) -> CompiledConstraints:
    typed = Table.like(X, Schema.infer(X, **schema))
    codec = Codec(typed.schema, Profile.measure(typed.read(X).codes, typed.schema))
    return CompiledConstraints.compile(typed, codec, vary, permitted, call, override)


def _ranges() -> st.SearchStrategy[Any]:
    ends = {"age": (20, 75), "income": (1000, 8000), "pay": (2.5, 35.55), "rate": (0.3, 4.4), "total": (1200.0, 8000.0)}

    def of(name: str) -> st.SearchStrategy[Any]:
        low, high = ends[name]
        middle = (low + high) / 2
        return st.builds(
            c.Range,
            st.just(name),
            st.none() | st.floats(low, middle).map(lambda x: round(x, 3)),
            st.floats(middle, high).map(lambda x: round(x, 3)),
        )

    return st.sampled_from(sorted(ends)).flatmap(of)


def per_feature() -> st.SearchStrategy[Any]:
    number = st.sampled_from(["age", "income", "pay", "rate", "total", "ratio"])
    sizes: dict[str, list[float]] = {
        "age": [1, 3, 5],
        "income": [50, 250],
        "pay": [0.1, 0.25, 5],
        "rate": [0.1, 0.5],
        "total": [0.01],
        "ratio": [0.0001],
    }
    steps = number.flatmap(
        lambda name: st.builds(c.Step, st.just(name), st.sampled_from(sizes[name]), st.sampled_from(["zero", "row"]))
    )
    near = st.one_of(
        st.builds(c.Near, number, percent=st.sampled_from([5, 10, 33.3])),
        st.builds(c.Near, number, by=st.sampled_from([0.3, 2, 50])),
        st.builds(c.Near, number, up=st.sampled_from([0, 1.5, 10]), down=st.none() | st.just(0)),
    )
    jobs = st.lists(st.sampled_from(JOBS), min_size=1, max_size=3, unique=True)
    return st.one_of(
        st.builds(c.Frozen, st.sampled_from(["age", "job", "income", "ratio", "own home"])),
        st.builds(c.OnlyUp, st.sampled_from(["age", "grade", "income", "job", "pay"])),
        st.builds(c.OnlyDown, st.sampled_from(["grade", "rate", "job", "total"])),
        _ranges(),
        near,
        steps,
        st.builds(c.Allowed, st.just("job"), jobs),
        st.builds(c.Forbidden, st.just("job"), st.lists(st.tuples(*[st.sampled_from(JOBS)] * 2), min_size=1, max_size=4)),
        st.builds(c.Forbidden, st.just("grade"), st.just([("low", "top"), ("mid", "low")])),
    )


def linked() -> st.SearchStrategy[Any]:
    formulas = [
        "pay * 12 <= 0.4 * income",
        "total == income + pay",
        "income + pay == total",
        "2 * pay == income - total + 3 * pay",
        "age >= 2 * rate + 16",
        "rate < pay",
        "max(rate, 1) * abs(pay) > min(age, 3)",
        "income / age <= 400",
        "ratio == 12 * pay / income",
        "rate ** 2 <= pay",
        "total - income >= 1",
    ]
    return st.one_of(
        st.sampled_from(formulas).map(c.Require),
        st.builds(c.AtMost, st.integers(1, 5)),
        st.just(c.Derived("ratio", "12 * pay / income")),
        st.just(c.Derived("total", "income + pay")),
        st.just(c.Derived("total", lambda frame: frame["income"] + frame["pay"], of=("income", "pay"))),
        st.just(c.If({"job": "nurse"}, then={"grade": ["mid", "high"]})),
        st.just(
            c.If({"grade": ["high", "top"], "own home": True}, then={"income": (3000, None), "job": ["smith", "tailor"]})
        ),
        st.just(c.If({"age": (None, 40)}, then={"rate": (0.5, 3), "own home": False})),
        st.just(c.If({"income": (5000, None)}, then={"grade": ["low", "top"]})),
        st.just(c.If({"grade": "low"}, then={"age": [20, 30, 40]})),
        st.builds(
            c.Together, st.just("grade"), st.sampled_from(["income", "pay"]), slope=st.sampled_from([None, 100, -0.37])
        ),
        st.builds(
            c.Together, st.just("age"), st.sampled_from(["grade", "rate"]), direction=st.sampled_from(["same", "opposite"])
        ),
        st.builds(c.Together, st.just("job"), st.just("age"), slope=st.sampled_from([None, 2])),
    )


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Any]:
    """Some rules of each sort, with the order of jobs that some of them need."""
    constraints = draw(st.lists(per_feature(), max_size=4)) + draw(st.lists(linked(), max_size=3))
    return [
        c.Order("job", tuple(draw(st.permutations(JOBS))[: draw(st.integers(2, 4))])),
        *draw(st.permutations(constraints)),
    ]
