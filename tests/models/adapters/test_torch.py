"""PyTorch modules: tensors of a function of yours, or our codec's matrix; one output or several, evaluation mode, threads."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.errors import InputError, ModelError
from fasterce.models.adapters import CodecMatrix, TorchModel, adapt
from fasterce.testing import check_adapter
from tests.models.adapters.tables import JOBS, applicants, check_explained, explainer, strength, two

torch = pytest.importorskip("torch")

X = applicants(300)


def tensors(frame: pd.DataFrame) -> Any:
    jobs = np.stack([(frame["job"] == name).to_numpy() for name in JOBS], axis=1)
    rest = frame[["age", "pay", "debt", "spouse"]].to_numpy(dtype=np.float32)
    return torch.as_tensor(np.hstack([(rest - [50, 50, 20, 0.5]) / [18, 15, 14, 0.5], jobs]).astype(np.float32))


def network(width: int, outputs: int) -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(width, 12),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.BatchNorm1d(12),
        torch.nn.Linear(12, outputs),
    )


def trained(inputs: Any, outputs: int, wanted: Any, loss: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        held = torch.as_tensor(inputs(X))
        module = network(held.shape[1], outputs)
        optimiser = torch.optim.Adam(module.parameters(), lr=0.03)
        for _ in range(60):
            optimiser.zero_grad()
            loss(module(held), wanted).backward()
            optimiser.step()
    return module


@pytest.fixture(scope="module")
def two_logits() -> Any:
    return trained(tensors, 2, torch.as_tensor(two(X)), torch.nn.functional.cross_entropy)


@pytest.fixture(scope="module")
def one_logit() -> Any:
    wanted = torch.as_tensor(two(X).astype(np.float32))[:, None]
    return trained(tensors, 1, wanted, torch.nn.functional.binary_cross_entropy_with_logits)


def own_labels(module: Any, frame: pd.DataFrame) -> np.ndarray:
    held = copy.deepcopy(module).eval()
    with torch.no_grad():
        outputs = held(tensors(frame)).numpy()
    return outputs.argmax(axis=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).astype(int)


def test_two_logits(two_logits: Any) -> None:
    model = TorchModel(two_logits, tensors, classes=["refused", "granted"])
    wanted = np.array(["refused", "granted"])[own_labels(two_logits, X)]
    assert (model.predict(X) == wanted).all()
    assert (wanted == two(X, ("refused", "granted"))).mean() > 0.85
    check_adapter(model, X.head(100))
    check_explained(model, X, lambda frame: np.array(["refused", "granted"])[own_labels(two_logits, frame)])


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_one_logit_is_the_second_class(one_logit: Any, activation: Any) -> None:
    model = TorchModel(one_logit, tensors, activation=activation)
    assert (model.predict(X) == own_labels(one_logit, X)).all()
    assert model.predict_proba(X).shape == (len(X), 2)
    check_adapter(model, X.head(100))


def test_the_mode_of_every_part_is_put_back(two_logits: Any) -> None:
    module = copy.deepcopy(two_logits).train()
    module[3].eval()
    before = [part.training for part in module.modules()]
    weights = copy.deepcopy(module.state_dict())
    model = TorchModel(module, tensors)
    predicted = model.predict_proba(X)
    assert [part.training for part in module.modules()] == before
    assert all(torch.equal(value, weights[name]) for name, value in module.state_dict().items()), "batch statistics moved"
    np.testing.assert_array_equal(predicted, TorchModel(copy.deepcopy(module).eval(), tensors).predict_proba(X))
    check_adapter(model, X.head(60))


def test_a_row_has_the_same_chances_to_the_bit_alone_and_among_others(two_logits: Any) -> None:
    model = TorchModel(two_logits, tensors)
    together = model.predict_proba(X)
    np.testing.assert_array_equal(
        np.concatenate([model.predict_proba(X.iloc[[k]]) for k in range(0, 300, 29)]), together[::29]
    )


def test_chances_where_the_module_ends_in_softmax(two_logits: Any) -> None:
    whole = torch.nn.Sequential(two_logits, torch.nn.Softmax(dim=1))
    model = TorchModel(whole, tensors, activation=None)
    assert (model.predict(X) == own_labels(two_logits, X)).all()
    check_adapter(model, X.head(50))
    with pytest.raises(ModelError, match=r"sum to 1.*activation='softmax'"):
        TorchModel(two_logits, tensors, activation=None).predict_proba(X)


class TwoInputs(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.jobs = torch.nn.Embedding(3, 4)
        self.last = torch.nn.Linear(6, 3)

    def forward(self, jobs: Any, numbers: Any) -> Any:
        return self.last(torch.cat([self.jobs(jobs), numbers], dim=1))


def test_several_inputs_by_place_and_by_name() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module = TwoInputs()

    def places(frame: pd.DataFrame) -> Any:
        numbers = frame[["pay", "debt"]].to_numpy(dtype=np.float32) / 20
        return frame["job"].map(JOBS.index).to_numpy(), numbers

    def names(frame: pd.DataFrame) -> Any:
        return dict(zip(("jobs", "numbers"), places(frame), strict=True))

    by_place, by_name = (TorchModel(module, inputs, classes=["a", "b", "c"]) for inputs in (places, names))
    np.testing.assert_array_equal(by_place.predict_proba(X), by_name.predict_proba(X))
    check_adapter(by_name, X.head(60))


def test_on_the_codecs_matrix() -> None:
    matrix = CodecMatrix(X)
    module = trained(matrix, 2, torch.as_tensor(two(X)), torch.nn.functional.cross_entropy)
    model = TorchModel.on_matrix(module, matrix, classes=["no", "yes"])
    assert matrix.width == matrix(X).shape[1] == 3 + 3 + 3 + 2
    assert (model.predict(X) == two(X, ("no", "yes"))).mean() > 0.85
    same = TorchModel.on_matrix(module, (None, X), classes=["no", "yes"])
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    check_adapter(model, X.head(60))
    check_explained(model, X, model.predict)
    with pytest.raises(InputError, match=r"Column 'job' must be one of .*'baker'"):
        model.predict(X.head(2).assign(job="baker"))


def test_a_regression() -> None:
    wanted = torch.as_tensor((strength(X) / 10).astype(np.float32))[:, None]
    module = trained(tensors, 1, wanted, torch.nn.functional.mse_loss)
    model = TorchModel(module, tensors, task="regression")
    assert model.predicts_numbers
    check_adapter(model, X.head(60))
    result = explainer(model, X).explain(X.head(6), target=(5.0, None))
    predicted = model.predict(result.counterfactuals[result.status == "found"])
    assert len(predicted) >= 2
    assert (predicted >= 5).all()


def test_the_error_for_a_bare_module_names_the_adapter(two_logits: Any) -> None:
    with pytest.raises(InputError, match=r"TorchModel\(Sequential\(...\), inputs=a function from a DataFrame to tensors\)"):
        adapt(two_logits)
    with pytest.raises(InputError, match="TorchModel"):
        FasterCE(two_logits).fit(X)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"inputs": "matrix"}, "inputs must be a function"),
        ({"activation": "relu"}, "activation must be"),
        ({"task": "ranking"}, "task must be"),
        ({"classes": "ab"}, "classes must name"),
    ],
)
def test_bad_arguments(two_logits: Any, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TorchModel(two_logits, **{"inputs": tensors, **wrong})


def test_outputs_that_do_not_fit_the_classes(two_logits: Any) -> None:
    with pytest.raises(ModelError, match="3 in all; got 2"):
        TorchModel(two_logits, tensors, classes=["a", "b", "c"]).predict(X)
    with pytest.raises(ModelError, match=r"one output per row for .* activation='sigmoid'; got 2"):
        TorchModel(two_logits, tensors, activation="sigmoid").predict(X)
    with pytest.raises(ModelError, match="one output per row"):
        TorchModel(two_logits, tensors, task="regression").predict(X)
    with pytest.raises(ModelError, match=r"inputs must return 256 entries .* shape \(3, 7\)"):
        TorchModel(two_logits, lambda frame: tensors(frame)[:3]).predict(X.head(5))


def test_it_can_be_copied_and_pickled(two_logits: Any) -> None:
    model = TorchModel(two_logits, tensors)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
