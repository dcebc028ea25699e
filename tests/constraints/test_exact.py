"""The promise: what the domain gives and accepts keeps every rule by a second opinion, and what it refuses breaks one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fasterce import constraints as c
from fasterce.constraints.compile import CompiledConstraints
from fasterce.constraints.compile.domain import Domain
from fasterce.errors import InputError
from fasterce.typing import Floats
from tests.constraints.checker import violations
from tests.constraints.worlds import compiled, rule_sets, table


def values(constraints: CompiledConstraints, codes: Floats) -> dict[Any, Any]:
    return {name: constraints.table.value(j, codes[j]) for j, name in enumerate(constraints.table.schema.names)}


def candidates(constraints: CompiledConstraints, domain: Domain, codes: Floats, seed: int, count: int = 12) -> Floats:
    """Other people's values for some features, noise on numbers, and the row itself."""
    rng = np.random.default_rng(seed)
    rows, features = codes.shape
    others = codes[rng.integers(0, rows, (rows, count))]
    noisy = others + rng.normal(size=others.shape) * codes.std(axis=0) * 0.3
    numeric = np.isin(np.arange(features), constraints.codec.numeric)
    points = np.where(numeric & (rng.random(others.shape) < 0.5), noisy, others)
    changed = rng.random(others.shape) < rng.choice([0.15, 0.4, 0.9], (rows, count, 1))
    points = np.where(changed, points, domain.base[:, None, :])
    points[:, 0] = domain.base
    return points


def made(seed: int, constraints: list[Any], schema: dict[str, Any]) -> tuple[CompiledConstraints, Floats]:
    X = table(seed)
    try:
        found = compiled(X, call=constraints, **schema)
    except InputError:
        assume(False)
    return found, found.table.read(X).codes


SCHEMAS: list[dict[str, Any]] = [{}, {}, {"immutable": ["rate"]}, {"increasing": ["age"], "ranges": {"income": (500, 20000)}}]
relaxed = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@relaxed
@given(seed=st.integers(0, 50), constraints=rule_sets(), schema=st.sampled_from(SCHEMAS))
def test_what_is_accepted_satisfies_every_constraint_and_what_is_refused_breaks_one(
    seed: int, constraints: Any, schema: Any
) -> None:
    found, codes = made(seed, constraints, schema)
    domain, _ = found.domain(codes)
    projected = domain.complete(domain.project(candidates(found, domain, codes, seed)))
    accepted = domain.contains(projected)
    for i in range(len(codes)):
        row = values(found, codes[i])
        for k in range(projected.shape[1]):
            broken = violations(row, values(found, projected[i, k]), constraints, found.table.schema)
            inside = (projected[i, k] >= domain.lower[i]) & (projected[i, k] <= domain.upper[i])
            if accepted[i, k]:
                assert broken == []
            else:
                assert broken or not inside[~domain.free[i]].all(), "refused without a reason"


@relaxed
@given(seed=st.integers(0, 50), constraints=rule_sets(), schema=st.sampled_from(SCHEMAS))
def test_completing_is_settled_and_the_same_alone_or_together(seed: int, constraints: Any, schema: Any) -> None:
    found, codes = made(seed, constraints, schema)
    domain, blocked = found.domain(codes)
    points = domain.project(candidates(found, domain, codes, seed))
    projected = domain.complete(points)
    np.testing.assert_array_equal(domain.complete(projected), projected)
    flat = np.repeat(np.arange(len(codes)), points.shape[1])
    np.testing.assert_array_equal(domain.complete_own(flat, points.reshape(len(flat), -1)), projected.reshape(len(flat), -1))
    np.testing.assert_array_equal(
        domain.contains_own(flat, projected.reshape(len(flat), -1)).reshape(projected.shape[:2]), domain.contains(projected)
    )
    few = np.array([len(codes) - 1, 2])
    np.testing.assert_array_equal(domain.take(few).complete(points[few]), projected[few])
    np.testing.assert_array_equal(domain.take(few).contains(projected[few]), domain.contains(projected)[few])
    alone, stuck = found.domain(codes[3:4])
    np.testing.assert_array_equal(alone.base[0], domain.base[3])
    np.testing.assert_array_equal(alone.complete(points[3:4])[0], projected[3])
    np.testing.assert_array_equal(alone.contains(projected[3:4])[0], domain.contains(projected)[3])
    assert stuck.get(0) == blocked.get(3)


@relaxed
@given(seed=st.integers(0, 50), constraints=rule_sets())
def test_a_row_that_satisfies_the_constraints_is_its_own_base(seed: int, constraints: Any) -> None:
    found, codes = made(seed, constraints, {})
    domain, blocked = found.domain(codes)
    kept = domain.contains(domain.row[:, None])[:, 0]
    for i in range(len(codes)):
        row = values(found, codes[i])
        assert kept[i] == (violations(row, row, constraints, found.table.schema) == [])
        if kept[i]:
            np.testing.assert_array_equal(domain.base[i], domain.row[i])
            assert i not in blocked
    np.testing.assert_array_equal(domain.complete(domain.base[:, None])[kept, 0], domain.base[kept])


@relaxed
@given(seed=st.integers(0, 50), constraints=rule_sets(), schema=st.sampled_from(SCHEMAS))
def test_a_limit_is_broken_where_the_second_opinion_says_so(seed: int, constraints: Any, schema: Any) -> None:
    found, codes = made(seed, constraints, schema)
    rng = np.random.default_rng(seed)
    others = codes[rng.permutation(len(codes))]
    others = np.where(rng.random(codes.shape) < 0.4, others, codes)
    for limit in found.active:
        if limit.origin == "constraints":
            facts = [constraint for constraint in constraints if constraint.kind in ("order", "derived")]
            free = found.table.schema.unconstrained()
            expected = [
                limit.constraint.text in violations(values(found, a), values(found, b), [limit.constraint, *facts], free)
                for a, b in zip(codes, others, strict=True)
            ]
            assert found.broken(limit, codes, others).tolist() == expected, limit.text


def test_a_step_from_one_written_value_to_another_is_legal_in_a_32_bit_column() -> None:
    found, codes = made(0, [c.Step("rate", 0.1, "row")], {})
    rate = found.table.schema.position("rate")
    row, other = codes[:1].copy(), codes[:1].copy()
    row[0, rate], other[0, rate] = np.float32(4.2), np.float32(4.4)
    limit = next(one for one in found.active if one.origin == "constraints")
    assert not found.broken(limit, row, other).any()
    domain, _ = found.domain(row)
    assert domain.round_flat(np.array([4.43]), rate, np.array([0])) == np.float32(4.4)


@pytest.mark.parametrize("seed", range(3))
def test_realistic_constraints_leave_enough_to_try(seed: int) -> None:
    """Not a vacuous promise: most completed candidates of a typical set of rules are legal."""
    constraints = [
        c.OnlyUp("age"),
        c.Frozen("own home"),
        c.Step("income", 50),
        c.Range("rate", 0, 4),
        c.Derived("ratio", "12 * pay / income"),
        c.Require("total == income + pay"),
        c.If({"job": "nurse"}, then={"grade": ["mid", "high"]}),
        c.Together("grade", "pay"),
    ]
    found, codes = made(seed, constraints, {})
    domain, blocked = found.domain(codes)
    assert blocked == {}
    projected = domain.complete(domain.project(candidates(found, domain, codes, seed)))
    assert domain.contains(projected).mean() > 0.5
