"""jax-relax (PyPI): counterfactual methods in JAX, for models written in JAX.

It is given the weights of the black box as a JAX function, hence only an MLP or a logistic regression. Its `DataModule`
scales numbers to 0..1 by the training rows and makes one-hot columns of categories; all settings are its defaults.
`vanilla` is Wachter's descent with its fixed weight, `sphere` is Growing Spheres. Compilation is not timed.
"""

import os

os.environ.setdefault("TQDM_DISABLE", "1")
if os.environ.get("OMP_NUM_THREADS", "1") == "1":
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from relax import DataModule
from relax.explain import prepare_cf_module
from relax.methods import GrowingSphere, VanillaCF

from benchmarks.rivals import gradients
from benchmarks.rivals.problem import Problem

METHODS = {"vanilla": VanillaCF, "sphere": GrowingSphere}
OUTCOME = "outcome_"


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        self.codes = problem.codes(problem.X_train)
        names = [f"f{j}" for j in range(len(problem.columns))]
        config = {
            "data_name": "problem",
            "continous_cols": [names[j] for j in problem.numeric],
            "discret_cols": [names[j] for j in problem.categorical],
            "imutable_cols": [names[j] for j in problem.immutable],
        }
        frame = pd.DataFrame(self.codes, columns=names).assign(**{OUTCOME: problem.y_train})
        self.data = DataModule.from_config(config, frame)
        self.blocks = self.layout()
        weights = gradients.known_weights(problem)
        if weights is None:
            raise ValueError("jax-relax needs a model that can be written in JAX; this black box has no known weights")
        self.predict = jax.jit(predictor(*self.input_layer(weights), weights, problem.target))
        self.method = prepare_cf_module(METHODS[variant](), self.data, self.predict)
        self.key = jax.random.PRNGKey(problem.seed)
        self.one = jax.jit(self.found)
        if variant == "vanilla":
            self.many = jax.jit(jax.vmap(self.found))
            self.explain_batch = self.all_at_once

    def layout(self) -> dict[int, tuple[int, np.ndarray]]:
        """Return for each feature its first column, and for a category the codes of the training rows in their order."""
        blocks, start = {}, 0
        for j in [*self.problem.numeric, *self.problem.categorical]:
            seen = np.unique(self.codes[:, j]) if j in self.problem.categorical else np.zeros(1)
            blocks[j] = (start, seen)
            start += len(seen)
        return blocks

    def input_layer(self, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the affine function from its matrix to the input of the model's first layer."""
        width = sum(len(seen) for _, seen in self.blocks.values())
        matrix, offset = np.zeros((width, len(weights["start"]))), weights["start"].copy()
        for j, (start, seen) in self.blocks.items():
            move = weights[f"move{j}"]
            if j in self.problem.numeric:
                low, span = self.low_and_span(j)
                matrix[start] = move[0] * span
                offset += move[0] * (low - weights["base"][j])
            else:
                matrix[start : start + len(seen)] = move[seen.astype(int)] - weights["start"]
        return matrix, offset

    def low_and_span(self, j: int) -> tuple[float, float]:
        low, high = self.codes[:, j].min(), self.codes[:, j].max()
        return low, high - low

    def found(self, row: jax.Array, key: jax.Array) -> jax.Array:
        """Call its method; compiled once here, since otherwise it is compiled again for every row."""
        return self.method.generate_cf(row, pred_fn=self.predict, y_target=self.target(), rng_key=key)

    def explain(self, row: pd.DataFrame) -> np.ndarray:
        return self.decoded(np.asarray(self.one(self.encoded(row)[0], self.key)).reshape(1, -1))

    def all_at_once(self, rows: pd.DataFrame) -> np.ndarray:
        encoded = self.encoded(rows)
        made = self.many(encoded, jax.random.split(self.key, len(encoded)))
        return self.decoded(np.asarray(made).reshape(len(encoded), -1))

    def target(self) -> jax.Array:
        return jnp.eye(2)[self.problem.target].reshape(1, -1)

    def encoded(self, rows: pd.DataFrame) -> jax.Array:
        codes = self.problem.codes(rows)
        matrix = np.zeros((len(codes), sum(len(seen) for _, seen in self.blocks.values())), dtype=np.float32)
        for j, (start, seen) in self.blocks.items():
            if j in self.problem.numeric:
                low, span = self.low_and_span(j)
                matrix[:, start] = (codes[:, j] - low) / (span or 1.0)
            else:
                matrix[:, start : start + len(seen)] = codes[:, [j]] == seen
        return jnp.asarray(matrix)

    def decoded(self, matrix: np.ndarray) -> np.ndarray:
        codes = np.empty((len(matrix), len(self.blocks)))
        for j, (start, seen) in self.blocks.items():
            if j in self.problem.numeric:
                low, span = self.low_and_span(j)
                codes[:, j] = low + span * matrix[:, start]
            else:
                codes[:, j] = seen[matrix[:, start : start + len(seen)].argmax(axis=1)]
        return codes

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return ["calls of the JAX model are not counted"]


def predictor(matrix: np.ndarray, offset: np.ndarray, weights: dict[str, np.ndarray], target: int):
    """Return the black box as a JAX function: the probabilities of both classes."""
    count = sum(name.startswith("W") for name in weights)
    layers = [(jnp.asarray(weights[f"W{k}"]), jnp.asarray(weights[f"b{k}"])) for k in range(count)]
    matrix, offset = jnp.asarray(matrix), jnp.asarray(offset)

    def predict(rows: jax.Array) -> jax.Array:
        value = rows @ matrix + offset
        for weight, bias in layers[:-1]:
            value = jax.nn.relu(value @ weight + bias)
        probability = jax.nn.sigmoid(value @ layers[-1][0] + layers[-1][1])
        return jnp.concatenate([1 - probability, probability] if target == 1 else [probability, 1 - probability], axis=-1)

    return predict
