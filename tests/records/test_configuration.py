"""Every option of `explain` survives JSON, however its value was written."""

import json
import math
from typing import Any

import numpy as np
import pytest

from fasterce import FasterCE, records
from fasterce.constraints import Forbidden, If, Order, Range
from fasterce.options import DEFAULTS
from fasterce.records import configuration
from records.worlds import refused


def through_json(explainer: FasterCE, **options: Any) -> dict[str, Any]:
    written = json.loads(json.dumps(configuration.written({**DEFAULTS, **options}, explainer.schema_), allow_nan=False))
    return configuration.restored(written, explainer.schema_)


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
        ("shake", {"income": np.float64(2)}, {"income": 2.0}),
        ("distance", {"debt": 3}, {"debt": 3}),
        ("distance", "mad", "mad"),
        ("rules", None, ()),
        ("rules", [Range("income", low=np.float64(10))], (Range("income", low=10.0),)),
    ],
)
def test_an_option_is_restored_as_it_was_meant(bank: FasterCE, option: str, given: Any, restored: Any) -> None:
    found = through_json(bank, **{option: given})
    assert found[option] == restored
    assert type(found[option]) is type(restored)
    others = {name: value for name, value in found.items() if name != option}
    assert others == {name: value for name, value in DEFAULTS.items() if name != option}


@pytest.mark.parametrize(
    "options",
    [
        {"reading": "paper"},
        {"permitted_range": {"income": (10, math.inf), "job": ["nurse"]}, "override": True},
        {"rules": [Order("job", ["clerk", "nurse", "smith"]), Forbidden("job", [("clerk", "smith")])], "override": True},
        {"rules": [If({"owner": True}, then={"income": (10, None)})], "n": 2},
        {"robust": 0.9, "shake": {"income": np.float32(2)}},
        {"why_not": False, "features_to_vary": ["age"], "margin": 1},
    ],
    ids=lambda options: next(iter(options)),
)
def test_records_by_any_options_can_be_made_again(bank: FasterCE, options: dict[str, Any]) -> None:
    found = [json.loads(records.to_json(one)) for one in records.make(bank, bank.explain(refused(bank.model, 3), **options))]
    for record in found:
        records.validate(record)
    again = records.replay(found, bank)
    assert again.same, again.differences
