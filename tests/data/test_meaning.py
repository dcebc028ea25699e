"""What a schema says for people: words, units, formats, wanted outcomes, and the direction in a person's interest."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import Feature, Schema, datasets
from fasterce.data.meaning import formatted, with_unit
from fasterce.data.schema_io import load_schema, save_schema
from fasterce.errors import SchemaError
from fasterce.viz.formatting import values

PEOPLE = pd.DataFrame(
    {
        "duration": [6, 24, 36],
        "rate": [0.031, 0.25, 0.4],
        "skill": pd.Categorical(["none", "some", "much"], ["none", "some", "much"], ordered=True),
        "job": ["clerk", "nurse", "smith"],
    }
)
SCHEMA = Schema.infer(PEOPLE)
DECLARED = SCHEMA.declare(
    {
        "duration": {
            "label": "term of the credit",
            "unit": "month|months",
            "help": "How long it runs.",
            "preferred": "lower",
        },
        "rate": {"format": ".1%", "preferred": "higher", "against_cost": 5.0},
        "skill": {"preferred": "higher"},
    },
    target="good",
    unwanted=["bad"],
    outcomes={"bad": "Refused", "good": "Granted"},
)


@pytest.mark.parametrize(
    ("value", "format", "decimals", "written"),
    [
        (4519, "", 0, "4,519"),
        (999, "", 0, "999"),
        (1234.5, "", 2, "1,234.5"),
        (1999, "d", 0, "1999"),
        (4519.6, ",d", 2, "4,520"),
        (3.5, ",.2f", 1, "3.50"),
        (0.1234, ".1%", 4, "12.3\u202f%"),
        (0.5, "%", 2, "50\u202f%"),
        (-0.001, "", 1, "0"),
    ],
)
def test_numbers_are_written_by_their_format(value: float, format: str, decimals: int, written: str) -> None:
    assert formatted(value, format, decimals) == written


def test_units_follow_the_number_and_one_has_a_word_of_its_own() -> None:
    assert [with_unit(text, "month|months") for text in ("1", "1.5", "24")] == ["1 month", "1.5 months", "24 months"]
    assert with_unit("3", "") == "3"


def test_values_too_near_for_the_format_get_more_decimals() -> None:
    feature = Feature("rate", "numeric", lower=0, upper=1, decimals=4, format=".1%")
    assert values(feature, 0.1, [0.2]) == ("10.0\u202f%", ["20.0\u202f%"])
    before, (after,) = values(feature, 0.1001, [0.1002])
    assert before != after


@pytest.mark.parametrize("name", ["schema.yaml", "schema.json"])
def test_everything_declared_comes_back_from_a_file(tmp_path: Any, name: str) -> None:
    save_schema(DECLARED, tmp_path / name)
    assert load_schema(tmp_path / name) == DECLARED


def test_everything_declared_comes_back_from_the_manifest_and_nothing_else_is_written() -> None:
    written = json.loads(json.dumps(DECLARED.to_dict()))
    assert Schema.from_dict(written) == DECLARED
    plain = json.dumps(SCHEMA.to_dict())
    assert not any(word in plain for word in ("label", "preferred", "against_cost", "target", "outcomes"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"job": {"preferred": "lower"}}, "ordered categories"),
        ({"job": {"unit": "EUR"}}, "numeric columns only"),
        ({"duration": {"preferred": "less"}}, "one of"),
        ({"duration": {"format": ".2x"}}, "format"),
        ({"duration": {"format": ".2d"}}, "format"),
        ({"duration": {"label": 3}}, "text"),
        ({"duration": {"against_cost": 0.5}}, "at least 1"),
        ({"duration": {"against_cost": math.inf}}, "at least 1"),
        ({"duration": {"lable": "term"}}, "Did you mean 'label'"),
        ({"duraton": {"label": "term"}}, "Did you mean 'duration'"),
    ],
)
def test_what_cannot_be_is_rejected(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SCHEMA.declare(columns)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"target": "good", "unwanted": ["good"]}, "not both"),
        ({"target": (1, 2, 3)}, "low, high"),
        ({"target": (None, None)}, "low, high"),
        ({"outcomes": {"good": 1}}, "words by class"),
        ({"outcomes": {"good": " "}}, "words by class"),
    ],
)
def test_outcomes_that_cannot_be_are_rejected(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SCHEMA.declare(**declared)


def test_the_wanted_class_is_found_by_its_text_and_never_guessed() -> None:
    assert SCHEMA.wanted(("bad", "good")) is None
    assert DECLARED.wanted(("bad", "good")) == "good"
    assert SCHEMA.declare(target="1").wanted((0, 1)) == 1
    assert SCHEMA.declare(unwanted=["bad"]).wanted(("bad", "good")) == "good"
    assert SCHEMA.declare(unwanted=["bad"]).wanted(("bad", "fair", "good")) is None
    assert SCHEMA.declare(unwanted=["awful"]).wanted(("bad", "good")) is None
    assert SCHEMA.declare(target=(None, 5.0)).wanted(()) == (None, 5.0)
    assert DECLARED.outcome("bad") == "Refused"
    assert SCHEMA.declare(outcomes={"0": "Refused"}).outcome(0) == "Refused"


def test_factors_are_for_the_direction_against_the_interest() -> None:
    assert SCHEMA.cost_factors() is None
    factors = DECLARED.cost_factors()
    assert factors is not None
    np.testing.assert_array_equal(factors, [[1, 5, 3, 1], [3, 1, 1, 1]])
    assert DECLARED.unconstrained().cost_factors() is None
    assert DECLARED.unconstrained().target is None


def test_a_change_is_against_the_interest_in_one_direction_only() -> None:
    duration, skill = DECLARED["duration"], DECLARED["skill"]
    assert duration.is_against(6, 24)
    assert not duration.is_against(24, 6)
    assert not duration.is_against(duration.missing_code, 24)
    assert skill.is_against(2, 1)
    assert not skill.is_against(0, 2)
    assert not DECLARED["job"].is_against(0, 1)


def test_a_column_without_a_label_is_named_by_its_name() -> None:
    assert Feature("credit_amount", "numeric").title == "credit amount"
    assert DECLARED["duration"].title == "term of the credit"


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_schemas_say_all_of_it(name: str) -> None:
    data = datasets.load(name)
    schema = data.schema
    assert schema.target == data.wanted
    assert {schema.outcome(label) for label in data.y.unique()} == set(schema.outcomes.values())
    assert [feature.name for feature in schema.features if not feature.label] == []
    assert any(feature.unit for feature in schema.features)
    assert any(feature.help for feature in schema.features)
    assert any(feature.format for feature in schema.features)
    assert schema.has_preferences
    assert schema.constraints, "what only time changes is limited"
