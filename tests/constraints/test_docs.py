"""What docs/constraints.md shows must run as it stands, and its rules must fit its table."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasterce import constraints
from fasterce.constraints.compile import CompiledConstraints
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.table import Table

TEXT = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text()


def test_the_examples_run_and_compile_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "docs/constraints.md", "exec"), names)
    table = Table.like(names["people"], names["schema"])
    codes = table.read(names["people"]).codes
    codec = Codec(table.schema, Profile.measure(codes, table.schema))
    every: tuple[list[Any], ...] = ([], names["one_by_one"], names["linked"])
    for listed in every:
        domain, blocked = CompiledConstraints.compile(table, codec, None, None, listed).domain(codes)
        assert blocked == {}
        assert domain.contains(domain.base[:, None]).any()
    function = CompiledConstraints.compile(table, codec, None, None, names["derived"], override=True)
    domain = function.domain(codes)[0]
    moved = domain.base[:, None].copy()
    moved[..., table.schema.position("income")] = 30000
    burden = table.schema.position("burden")
    assert domain.complete(moved)[:, 0, burden].tolist() == [0.1, 0.164, 0.12, 0.04]


def test_every_kind_of_constraint_is_shown() -> None:
    for name in dir(constraints):
        if name[0].isupper() and name != "Constraint":
            assert f"{name}(" in TEXT, name


def test_the_yaml_is_a_list_of_constraints() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    found = constraints.from_dict(yaml.safe_load(block))
    assert [constraint.kind for constraint in found] == ["range", "only_up", "require", "if"]
