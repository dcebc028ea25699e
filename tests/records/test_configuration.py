"""Every option of `explain` survives JSON, however its value was written."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fasterce import FasterCE, records
from fasterce.constraints import Forbidden, If, Order, Range
from fasterce.options import ExplainOptions, defaults, option
from fasterce.records import configuration
from tests.records.worlds import refused


def through_json(explainer: FasterCE, **options: Any) -> dict[str, Any]:
    written = json.loads(json.dumps(configuration.written({**defaults(), **options}, explainer.schema_), allow_nan=False))
    return configuration.restored(written)


@pytest.mark.parametrize(
    ("option", "given", "restored"),
    [
        ("target", np.str_("good"), "good"),
        ("target", (None, 5.0), (None, 5.0)),
        ("target", [-math.inf, 5], (None, 5)),
        ("target_score", np.array([0.5, 1.0]), (0.5, 1.0)),
        ("n", np.int64(3), 3),
        ("diversity", np.float64(0.25), 0.25),
        ("override", np.bool_(True), True),
        ("features_to_vary", "all", "all"),
        ("features_to_vary", np.array(["age", "income"], dtype=object), ["age", "income"]),
        ("permitted_range", {"income": (10, math.inf)}, {"income": (10, math.inf)}),
        ("permitted_range", {"income": np.array([-math.inf, 60.0])}, {"income": (-math.inf, 60.0)}),
        ("permitted_range", {"owner": {np.bool_(True)}, "job": ("nurse",)}, {"owner": [True], "job": ["nurse"]}),
        ("noise", {"income": np.float64(2)}, {"income": 2.0}),
        ("distance", {"debt": 3}, {"debt": 3}),
        ("distance", "mad", "mad"),
        ("constraints", None, ()),
        ("constraints", [Range("income", low=np.float64(10))], (Range("income", low=10.0),)),
    ],
)
def test_an_option_is_restored_as_it_was_meant(bank: FasterCE, option: str, given: Any, restored: Any) -> None:
    found = through_json(bank, **{option: given})
    assert found[option] == restored
    assert type(found[option]) is type(restored)
    others = {name: value for name, value in found.items() if name != option}
    assert others == {name: value for name, value in defaults().items() if name != option}


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "paper"},
        {"permitted_range": {"income": (10, math.inf), "job": ["nurse"]}, "override": True},
        {
            "constraints": [Order("job", ("clerk", "nurse", "smith")), Forbidden("job", (("clerk", "smith"),))],
            "override": True,
        },
        {"constraints": [If({"owner": True}, then={"income": (10, None)})], "n": 2},
        {"robust": 0.9, "noise": {"income": np.float32(2)}},
        {"diagnose": False, "features_to_vary": ["age"], "margin": 1},
    ],
    ids=lambda options: next(iter(options)),
)
def test_records_by_any_options_can_be_made_again(bank: FasterCE, options: dict[str, Any]) -> None:
    found = [json.loads(records.to_json(one)) for one in records.make(bank, bank.explain(refused(bank.model, 3), **options))]
    for record in found:
        records.validate(record)
    again = records.replay(found, bank)
    assert again.same, again.differences


@dataclass(frozen=True)
class WithPatience(ExplainOptions):
    patience: int = option(3, "Rounds without progress before a search ends.", minimum=1, maximum=9)


def test_a_new_option_is_written_restored_and_in_the_schema(bank: FasterCE) -> None:
    options = configuration.written({**defaults(WithPatience), "patience": np.int64(5)}, bank.schema_, WithPatience)
    assert options["patience"] == 5
    assert configuration.restored(options, WithPatience)["patience"] == 5
    shape = configuration.options_schema(WithPatience)
    assert "patience" in shape["required"]
    assert shape["properties"]["patience"].items() >= {"type": "integer", "minimum": 1, "maximum": 9}.items()


def test_the_schema_has_exactly_the_declared_options() -> None:
    properties = records.SCHEMA["properties"]["configuration"]["properties"]["options"]["properties"]
    assert list(properties) == list(defaults())
    assert all(one["description"] for one in properties.values())
