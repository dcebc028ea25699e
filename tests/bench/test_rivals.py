"""Our own versions of published methods, on a model small enough to compute by hand.

The model predicts class 1 where x + 2 y + 3 [c is b] > 12. The row explained is x = 2, y = 2, c = a, six short of it.
"""

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from benchmarks import venvs
from benchmarks.rivals import (
    catalogue,
    certifai,
    exhaustive,
    gradients,
    latentcf,
    ours,
    problem,
    remote_model,
    sharpshooter,
    wachter,
)
from benchmarks.rivals.autoencoder import Autoencoder
from benchmarks.rivals.encoding import Encoding
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = Path(__file__).parent.parent.parent
ROW = pd.DataFrame({"x": [2.0], "y": [2.0], "c": pd.Series(["a"], dtype="str")})
TRAIN = pd.DataFrame({"x": np.arange(11.0), "y": np.arange(10.0, -1, -1), "c": pd.Series(list("abcabcabcab"), dtype="str")})


def make(folder: Path, last: Any = None, **constraints: Any) -> problem.Problem:
    columns = make_column_transformer((StandardScaler(), ["x", "y"]), (OneHotEncoder(sparse_output=False), ["c"]))
    model = make_pipeline(columns, LogisticRegression() if last is None else last)
    model.fit(TRAIN, np.arange(11) > 5)
    if last is None:
        scaler = columns.named_transformers_["standardscaler"]
        scaler.mean_[:], scaler.scale_[:] = 0.0, 1.0
        model[-1].coef_, model[-1].intercept_ = np.array([[1.0, 2.0, 0.0, 3.0, 0.0]]), np.array([-12.0])
    folder.mkdir(exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    TRAIN.assign(**{"": np.arange(11) > 5}).to_parquet(folder / "train.parquet")
    ROW.to_parquet(folder / "rows.parquet")
    numeric, categories = {"x": (0.0, 10.0, 1), "y": (0.0, 10.0, 1)}, {"c": ["a", "b", "c"]}
    spec = {"seed": 0, "target": 1, "numeric": numeric, "categories": categories, "versions": {}, **constraints}
    (folder / "spec.json").write_text(json.dumps(spec))
    return problem.Problem(folder)


@pytest.fixture
def small(tmp_path: Path) -> problem.Problem:
    return make(tmp_path / "small")


def counterfactual_of(rival: Any) -> dict[str, Any]:
    return rival.table(rival.explain(ROW)).iloc[0].to_dict()


def test_the_model_is_as_written_above(small: problem.Problem) -> None:
    assert small.predict_proba(ROW)[0, 1] == pytest.approx(1 / (1 + np.exp(6)))


# Encoding


def test_an_encoding_scales_numbers_spreads_categories_and_comes_back_typed(small: problem.Problem) -> None:
    encoding = Encoding(small)
    matrix = encoding.matrix(small.codes(ROW))
    np.testing.assert_allclose(matrix, [[-3 / np.sqrt(10), -3 / np.sqrt(10), 1, 0, 0]])
    np.testing.assert_array_equal(encoding.codes(matrix), [[2, 2, 0]])
    beyond = encoding.codes(np.array([[99.0, 0.01, 0.2, 0.3, 0.5]]))
    np.testing.assert_array_equal(beyond, [[10.0, 5.0, 2.0]])


def test_an_encoding_to_a_range_reaches_its_ends_at_the_limits(small: problem.Problem) -> None:
    encoding = Encoding(small, numbers=(-1.0, 1.0))
    np.testing.assert_allclose(encoding.matrix(np.array([[0.0, 10.0, 1]])), [[-1, 1, 0, 1, 0]])
    np.testing.assert_allclose(Encoding(small, numbers="raw").matrix(np.array([[0.5, 7.0, 2]])), [[0.5, 7, 0, 0, 1]])


def test_an_encoding_knows_what_is_frozen_and_how_far_numbers_go(tmp_path: Path) -> None:
    encoding = Encoding(make(tmp_path, immutable=["c"], ranges={"y": [1, 4]}), numbers="raw")
    np.testing.assert_array_equal(encoding.frozen(), [False, False, True, True, True])
    low, high = encoding.limits()
    np.testing.assert_array_equal(low, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(high, [10, 4, 1, 1, 1])


# Gradients


def test_the_exact_gradient_is_that_of_the_logistic_curve(small: problem.Problem) -> None:
    encoding = Encoding(small, numbers="raw")
    probability, gradient = gradients.of(small, encoding).value_and_gradient(encoding.matrix(small.codes(ROW))[0])
    curve = np.exp(6) / (1 + np.exp(6)) ** 2
    assert probability == pytest.approx(1 / (1 + np.exp(6)))
    np.testing.assert_allclose(gradient[:2], [curve, 2 * curve])
    assert gradient[3] - gradient[2] == pytest.approx(3 * curve)


@pytest.mark.parametrize("last", [MLPClassifier((6, 5), max_iter=30, random_state=1), LogisticRegression()])
@pytest.mark.filterwarnings("ignore")
def test_exact_gradients_agree_with_the_model_and_with_small_differences(tmp_path: Path, last: Any) -> None:
    given = make(tmp_path, last)
    encoding = Encoding(given)
    exact = gradients.of(given, encoding)
    assert isinstance(exact, gradients.Exact)
    for row in encoding.matrix(given.codes(TRAIN)):
        probability, gradient = exact.value_and_gradient(row)
        assert probability == pytest.approx(given.predict_proba(encoding.codes(row[None]))[0, 1])
        steps = 1e-6 * np.eye(len(row))
        numerical = [(exact.probability(row + step) - exact.probability(row - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(gradient, numerical, atol=1e-5)


def test_a_model_without_weights_is_evaluated_on_both_sides(tmp_path: Path) -> None:
    given = make(tmp_path, RandomForestClassifier(5, random_state=0))
    assert isinstance(gradients.of(given, Encoding(given)), gradients.Differences)


def test_differences_are_those_of_the_predictions(small: problem.Problem) -> None:
    encoding = Encoding(small, numbers="raw")
    at = np.array([[6.0, 3.0, 0]])
    probability, gradient = gradients.Differences(small, encoding).value_and_gradient(encoding.matrix(at)[0])
    assert small.usage.calls == 1
    sides = small.predict_proba(np.array([[5.7, 3, 0], [6.3, 3, 0], [6, 3, 1], [6, 3, 0]]))[:, 1]
    assert gradient[0] == pytest.approx((sides[1] - sides[0]) / 0.6)
    assert gradient[3] == pytest.approx(sides[2] - sides[3])
    assert probability == sides[3]
    assert gradient[2] == 0


# Wachter


def test_wachter_s_prices_are_one_over_the_median_absolute_deviation(small: problem.Problem) -> None:
    np.testing.assert_allclose(wachter.prices(small, Encoding(small, numbers="raw")), [1 / 3, 1 / 3, 0.5, 0.5, 0.5])


def test_adam_s_first_step_is_its_learning_rate_whatever_the_gradient() -> None:
    np.testing.assert_allclose(wachter.Adam(3, 0.1).step(np.array([5.0, -0.01, 1e-3])), [0.1, -0.1, 0.1], rtol=1e-4)


@pytest.mark.parametrize(
    ("values", "expected"), [([0.8, 0.8], [0.5, 0.5]), ([1.2, -0.3, 0.1], [1, 0, 0]), ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])]
)
def test_the_nearest_shares(values: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(wachter.on_simplex(np.array(values)), expected)


def test_wachter_s_gradient_weighs_the_gap_against_the_distance(small: problem.Problem) -> None:
    rival = wachter.Rival(small, "adam")
    own = rival.encoding.matrix(small.codes(ROW))[0]
    moved = own + np.array([0.0, 0.5, 0, 0, 0])
    probability, gradient = rival.model_gradient.value_and_gradient(moved)
    found = rival.gradient(own, moved, weight=10.0)
    assert found[0] == pytest.approx(20 * (probability - 1) * gradient[0])
    assert found[1] == pytest.approx(20 * (probability - 1) * gradient[1] + np.sqrt(10) / 3)


def test_wachter_moves_what_helps_most_for_its_price_and_little_more_than_needed(small: problem.Problem) -> None:
    found = counterfactual_of(wachter.Rival(small, "adam"))
    assert (found["x"], found["c"]) == (2.0, "a")
    assert 5.1 <= found["y"] <= 7


def test_wachter_keeps_to_constraints(tmp_path: Path) -> None:
    found = counterfactual_of(wachter.Rival(make(tmp_path, immutable=["y"], ranges={"x": [0, 9]}), "adam"))
    assert found["y"] == 2.0
    assert found["x"] + 3 * (found["c"] == "b") > 8
    assert found["x"] <= 9


def test_wachter_gives_up_where_nothing_flips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wachter, "ROUNDS", 3)
    assert wachter.Rival(make(tmp_path, immutable=["y", "c"], ranges={"x": [0, 5]}), "adam").explain(ROW) is None


# Latent-CF and SharpShooter


class Itself:
    """An autoencoder that changes nothing."""

    def __init__(self, *_: Any) -> None:
        pass

    def encode(self, matrix: np.ndarray) -> np.ndarray:
        return matrix

    def decode(self, latent: np.ndarray) -> np.ndarray:
        return latent

    def latent_gradient(self, _: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient


def test_latent_cf_goes_just_to_the_boundary(small: problem.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latentcf, "Autoencoder", Itself)
    rival = latentcf.Rival(small, "adam")
    start = rival.encoding.matrix(small.codes(ROW))[0]
    probability = rival.model_gradient.probability(rival.descend(start, 0.5))
    assert 0.5 - latentcf.NEAR <= probability < 0.6
    found = rival.explain(ROW)
    assert small.predict_proba(found)[0, 1] > 0.5


def test_a_gradient_is_propagated_through_the_decoder(small: problem.Problem) -> None:
    encoding = Encoding(small)
    learned = Autoencoder(encoding, encoding.matrix(small.codes(TRAIN)), seed=0, updates=20)
    latent, gradient = np.array([0.3, -0.2]), np.arange(5.0)
    steps = 1e-2 * np.eye(2)
    numerical = [(learned.decode((latent + s)[None]) - learned.decode((latent - s)[None])) @ gradient / 2e-2 for s in steps]
    np.testing.assert_allclose(learned.latent_gradient(latent, gradient), np.ravel(numerical), rtol=0.02, atol=1e-3)


def test_an_autoencoder_learns_the_rows_and_gives_shares(small: problem.Problem) -> None:
    encoding = Encoding(small)
    matrix = encoding.matrix(small.codes(TRAIN))
    learned = Autoencoder(encoding, matrix, seed=0, updates=800)
    decoded = learned.decode(learned.encode(matrix))
    np.testing.assert_allclose(decoded[:, 2:].sum(axis=1), 1, rtol=1e-5)
    assert (decoded[:, 2:].argmax(axis=1) == matrix[:, 2:].argmax(axis=1)).mean() > 0.7
    assert np.abs(decoded[:, :2] - matrix[:, :2]).mean() < 0.3


def test_points_between_leave_out_the_start_and_hold_the_end() -> None:
    points = sharpshooter.between(np.array([0.0, 1.0]), np.array([5.0, 1.0]))
    np.testing.assert_allclose(points[:2], [[0.1, 1], [0.2, 1]])
    np.testing.assert_allclose(points[-1], [5, 1])


def shooting(small: problem.Problem, monkeypatch: pytest.MonkeyPatch, projection: list[float]) -> sharpshooter.Rival:
    monkeypatch.setattr(sharpshooter, "Autoencoder", Itself)
    rival = sharpshooter.Rival(small, "line")
    projector: Any = rival.projector
    projector.decode = lambda _: rival.encoding.matrix(np.array([projection]))
    return rival


def test_sharpshooter_takes_the_first_point_of_the_line_that_flips(
    small: problem.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From y = 2 to y = 8 in fifty steps of 0.12: the boundary, y = 5, is passed at the 26th, 5.12, with one decimal 5.1."""
    assert counterfactual_of(shooting(small, monkeypatch, [2.0, 8.0, 0])) == {"x": 2.0, "y": 5.1, "c": "a"}


def test_sharpshooter_aims_at_the_centroid_where_the_projection_is_refused(
    small: problem.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = shooting(small, monkeypatch, [1.0, 1.0, 0])
    own = rival.encoding.matrix(small.codes(ROW))
    accepted = rival.reaches_target(small.codes(TRAIN))
    assert 0 < accepted.sum() < len(TRAIN)
    np.testing.assert_allclose(rival.end(own), rival.encoding.matrix(small.codes(TRAIN[accepted])).mean(axis=0))


# Exhaustive search


@pytest.mark.parametrize(
    ("variant", "constraints", "expected"),
    [
        ("one", {}, (2.0, 5.1)),
        ("two", {}, (2.0, 5.1)),
        ("one", {"immutable": ["y"]}, (8.1, 2.0)),
        ("one", {"ranges": {"y": [0, 4]}}, (8.1, 2.0)),
        ("two", {"ranges": {"y": [0, 4]}}, (4.1, 4.0)),
    ],
)
def test_the_exhaustive_optimum_is_the_one_found_by_hand(
    tmp_path: Path, variant: str, constraints: dict[str, Any], expected: tuple[float, float]
) -> None:
    found = counterfactual_of(exhaustive.Rival(make(tmp_path, **constraints), variant))
    assert (found["x"], found["y"], found["c"]) == (*expected, "a")


def test_the_exhaustive_search_says_when_there_is_nothing(tmp_path: Path) -> None:
    given = make(tmp_path, ranges={"x": [0, 3], "y": [0, 3]})
    assert exhaustive.Rival(given, "two").explain(ROW) is None


def test_the_exhaustive_search_evaluates_the_near_before_the_far(small: problem.Problem) -> None:
    rival = exhaustive.Rival(small, "one")
    features, codes, prices = rival.singles(small.codes(ROW)[0])
    assert len(prices) == 100 + 100 + 2
    nearest = prices.argmin()
    assert prices[nearest] == pytest.approx(0.01)
    assert codes[nearest, 0] in (1.9, 2.1)
    assert prices[features[:, 0] == 2].tolist() == [1.0, 1.0]


# CERTIFAI


def test_certifai_does_not_touch_what_must_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certifai, "POPULATION", 100)
    monkeypatch.setattr(certifai, "GENERATIONS", 20)
    found = counterfactual_of(certifai.Rival(make(tmp_path, immutable=["y", "c"], ranges={"x": [0, 9]}), "genetic"))
    assert (found["y"], found["c"]) == (2.0, "a")
    assert 8 < found["x"] <= 9


# fasterce


def test_a_variant_of_ours_names_the_method(small: problem.Problem) -> None:
    assert ours.options(small, "robust") | {"method": "closest", "robust": 0.95} == ours.options(small, "robust")
    assert ours.options(small, "sparse-uncompiled")["method"] == "sparse"


def test_certifai_sets_nothing_back(small: problem.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certifai, "POPULATION", 50)
    monkeypatch.setattr(certifai, "GENERATIONS", 1)
    found = counterfactual_of(certifai.Rival(small, "genetic"))
    assert all(found[name] != ROW[name].iloc[0] for name in ("x", "y"))


def test_our_schema_freezes_what_must_not_change(tmp_path: Path) -> None:
    schema = ours.schema(make(tmp_path, immutable=["c"]))
    assert [feature.mutable for feature in schema.features] == [True, True, False]
    assert (schema["x"].lower, schema["x"].upper, schema["x"].decimals) == (0.0, 10.0, 1)


# Where rivals run


@pytest.fixture
def remote(small: problem.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    project_python = tmp_path / ".project_python"
    project_python.write_text(sys.executable)
    monkeypatch.setattr(problem, "PROJECT_PYTHON", project_python)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(ROOT)
    there = problem.Problem(small.folder)
    yield there
    assert there.remote is not None
    there.remote.process.kill()
    there.remote.process.wait()


def test_a_model_behind_a_pipe_predicts_as_it_does_here(small: problem.Problem, remote: problem.Problem) -> None:
    for rows in (ROW, TRAIN, small.codes(TRAIN)):
        np.testing.assert_array_equal(remote.predict_proba(rows), small.predict_proba(rows))
    assert remote.usage.calls == 3
    assert remote.usage.rows == 23
    assert remote.usage.model_seconds > 0
    there, here = gradients.known_weights(remote), gradients.known_weights(small)
    assert there is not None
    assert here is not None
    assert there.keys() == here.keys()
    for name, values in here.items():
        np.testing.assert_array_equal(there[name], values)


def test_a_model_server_that_died_is_an_error_and_not_a_hang(remote: problem.Problem) -> None:
    remote.predict_proba(ROW)
    assert remote.remote is not None
    remote.remote.process.kill()
    remote.remote.process.wait()
    with pytest.raises((RuntimeError, BrokenPipeError)):
        remote.predict_proba(ROW)


def test_a_pipe_that_ends_early_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    with path.open("rb") as stream, pytest.raises(RuntimeError, match="serves the model"):
        remote_model.read_exactly(stream, 4)


def test_every_rival_of_the_catalogue_has_its_file_and_a_name_of_its_own() -> None:
    folder = ROOT / "benchmarks" / "rivals"
    names = [entry.name for entry in catalogue.ENTRIES]
    assert len(set(names)) == len(names)
    assert len({entry.title for entry in catalogue.ENTRIES}) == len(names)
    for entry in catalogue.ENTRIES:
        assert (folder / f"{entry.module}.py").exists(), entry
        assert set(entry.models) <= set(catalogue.MODELS), entry
        assert (folder / f"{entry.module}.txt").exists() == (bool(entry.package) and not entry.ours), entry
        assert catalogue.find(entry.name) is entry


def test_our_own_rivals_can_be_imported() -> None:
    for module in {entry.module for entry in catalogue.ENTRIES if not entry.package}:
        assert hasattr(import_module(f"benchmarks.rivals.{module}"), "Rival")


def test_requirements_are_pinned_every_one() -> None:
    for path in (ROOT / "benchmarks" / "rivals").glob("*.txt"):
        listed = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        assert path.name == "base.txt" or all("==" in line for line in listed), path


def test_a_missing_interpreter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(venvs.CannotInstall, match=r"needs Python 3\.1, which is not on this machine"):
        venvs._interpreter("# own pins\n# python 3.1\n")
    assert venvs._interpreter("no version") == sys.executable


def test_why_a_rival_cannot_be_installed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rivals").mkdir()
    (tmp_path / "rivals" / "nobody.txt").write_text("# own pins\n# python 3.1\nnobody==1\n")
    monkeypatch.setattr(venvs, "HERE", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(venvs.CannotInstall):
        venvs.python_of("nobody")
    assert "needs Python 3.1" in (tmp_path / ".venvs" / "nobody" / "REASON").read_text()
    assert venvs.python_of("ours") == sys.executable
