"""Tuning constants as data: defaults, changes, saving."""

import json
from dataclasses import fields, replace
from inspect import getsource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fasterce
from fasterce import FasterCE
from fasterce import config as module
from fasterce.config import Config, FitConfig, LatentConfig, SurrogateConfig
from fasterce.errors import ArtifactError, InputError


def approve(frame: pd.DataFrame) -> list[str]:
    return ["yes" if score > 60 else "no" for score in frame["income"] + 5 * (frame["job"] == "own")]


def people(count: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.integers(20, 100, count), "job": rng.choice(["own", "employed"], count)})


def test_the_defaults_are_an_empty_dictionary() -> None:
    assert Config().to_dict() == {}
    assert Config.from_dict({}) == Config()


def test_changes_are_the_same_after_json() -> None:
    config = Config(LatentConfig(region_counts=(2, 3), near_spread=0.5), fit=FitConfig(training_rows=7))
    written = json.loads(json.dumps(config.to_dict()))
    assert written == {"latent": {"near_spread": 0.5, "region_counts": [2, 3]}, "fit": {"training_rows": 7}}
    assert Config.from_dict(written) == config
    assert Config.from_dict(json.loads(json.dumps(Config.fast().to_dict()))) == Config.fast()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"latnt": {}}, "fitting.unknown_config"),
        ({"latent": {"patients": 3}}, "fitting.unknown_config"),
        ({"latent": {"patience": 3.5}}, "fitting.config_type"),
        ({"latent": {"patience": True}}, "fitting.config_type"),
        ({"latent": {"region_counts": 4}}, "fitting.config_type"),
    ],
)
def test_unknown_fields_and_other_types_are_rejected(content: dict[str, dict[str, int | float]], code: str) -> None:
    with pytest.raises(InputError) as error:
        Config.from_dict(content)
    assert error.value.problem.code == code


@pytest.mark.parametrize("section", fields(Config))
def test_every_field_is_documented(section: object) -> None:
    kind = type(getattr(Config(), section.name))  # type: ignore[attr-defined]
    lines = [line.strip() for line in getsource(kind).splitlines()]
    for field in fields(kind):
        place = next(k for k, line in enumerate(lines) if line.startswith(f"{field.name}: "))
        assert lines[place + 1].startswith('"""'), f"{kind.__name__}.{field.name}"


def test_a_fast_fit_works_and_its_config_is_saved(tmp_path: Path) -> None:
    explainer = FasterCE(approve, config=Config.fast()).fit(people())
    assert explainer.report_.agreement > 0.8
    explainer.save(tmp_path / "saved")
    again = fasterce.load(tmp_path / "saved", approve)
    assert again.state_.search.config == again.config == Config.fast()
    rows = people(20)
    pd.testing.assert_frame_equal(again.explain(rows).counterfactuals, explainer.explain(rows).counterfactuals)
    assert (explainer.explain(rows).status == "found").any()


def test_the_default_config_is_none_when_loaded(tmp_path: Path) -> None:
    explainer = FasterCE(approve, config=Config(fit=FitConfig())).fit(people(60))
    explainer.save(tmp_path / "saved")
    assert fasterce.load(tmp_path / "saved", approve).config is None


def test_other_constants_make_another_digest() -> None:
    explainer = FasterCE(approve, config=Config.fast()).fit(people())
    before = fasterce.artifact.digest(explainer)
    search = replace(explainer.state_.search, config=replace(Config.fast(), surrogate=SurrogateConfig()))
    explainer.state_ = replace(explainer.state_, search=search)
    assert fasterce.artifact.digest(explainer) != before


def test_a_manifest_with_an_unknown_field_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = FasterCE(approve, config=Config.fast()).fit(people())
    monkeypatch.setattr(module.Config, "to_dict", lambda _: {"latent": {"patients": 1}})
    with pytest.raises(ArtifactError):
        explainer.save(tmp_path / "saved")
